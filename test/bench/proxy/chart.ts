// Line charts as SVG, for the documents: panels below each other, both axes from 0 on.

export interface Line {
  readonly name: string;
  readonly values: readonly number[];
  readonly colour: string;
}

export interface Panel {
  readonly title: string;
  /** What the values are spread over, evenly: its name, and where the last value lies. */
  readonly across: { readonly name: string; readonly most: number };
  readonly lines: readonly Line[];
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP] = [720, 180, 60, 34, 30, 84];
const INNER = WIDTH - LEFT - RIGHT;
const TICKS = [0, 0.25, 0.5, 0.75, 1];
const CHAR_WIDTH = 7;

/** The next of 1, 2, 4, 6, 8, 10 times a power of ten, so that the quarters are short numbers. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 6, 8].find((step) => value <= step * power) ?? 10) * power;
}

const brief = (value: number): string => Number(value.toPrecision(3)).toLocaleString('en');

function axes(top: number, most: number, across: Panel['across']): string[] {
  const grid = TICKS.flatMap((part) => {
    const [x, y] = [LEFT + part * INNER, top + HEIGHT - part * HEIGHT];
    return [
      `<line x1="${LEFT}" y1="${y}" x2="${LEFT + INNER}" y2="${y}" stroke="#ddd"/>`,
      `<text x="${LEFT - 6}" y="${y + 4}" text-anchor="end">${brief(part * most)}</text>`,
      `<text x="${x}" y="${top + HEIGHT + 16}" text-anchor="middle">${brief(part * across.most)}</text>`,
    ];
  });
  const name = `<text x="${LEFT + INNER / 2}" y="${top + HEIGHT + 34}" text-anchor="middle">${across.name}</text>`;
  return [...grid, name];
}

function legend(lines: readonly Line[], top: number): string[] {
  let x = LEFT + 10;
  return lines.map(({ name, colour }) => {
    const text = `<text x="${x}" y="${top + 16}" fill="${colour}">${name}</text>`;
    x += (name.length + 3) * CHAR_WIDTH;
    return text;
  });
}

function panel({ title, across, lines }: Panel, index: number): string {
  const top = TOP + index * (HEIGHT + GAP);
  const most = roundUp(Math.max(...lines.flatMap(({ values }) => [...values])) || 1);
  const points = (values: readonly number[]): string =>
    values
      .map((value, i) => {
        const x = LEFT + (i / Math.max(1, values.length - 1)) * INNER;
        return `${x.toFixed(1)},${(top + HEIGHT - (value / most) * HEIGHT).toFixed(1)}`;
      })
      .join(' ');
  return [
    `<text x="${LEFT}" y="${top - 10}" font-weight="bold">${title}</text>`,
    ...axes(top, most, across),
    ...lines.map(
      ({ values, colour }) =>
        `<polyline points="${points(values)}" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
    ),
    ...legend(lines, top),
  ].join('\n');
}

/** `title` is for who cannot see it. */
export function chart(
  panels: readonly Panel[],
  title = 'Cost, storage and memory of a growing session',
): string {
  const height = TOP + panels.length * (HEIGHT + GAP);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${title}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    ...panels.map(panel),
    '</svg>\n',
  ].join('\n');
}
