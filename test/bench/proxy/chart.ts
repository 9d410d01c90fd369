// Line charts as SVG, for the documents.

export interface Line {
  readonly name: string;
  readonly values: readonly number[];
  readonly colour: string;
}

export interface Panel {
  readonly title: string;
  readonly lines: readonly Line[];
}

const [WIDTH, HEIGHT, LEFT, TOP, GAP] = [720, 180, 60, 30, 50];

function panel({ title, lines }: Panel, index: number): string {
  const top = TOP + index * (HEIGHT + GAP);
  const most = Math.max(...lines.flatMap(({ values }) => [...values])) * 1.1 || 1;
  const points = (values: readonly number[]): string =>
    values
      .map((value, i) => {
        const x = LEFT + (i / Math.max(1, values.length - 1)) * (WIDTH - LEFT - 10);
        return `${x.toFixed(1)},${(top + HEIGHT - (value / most) * HEIGHT).toFixed(1)}`;
      })
      .join(' ');
  const legend = lines.map(
    ({ name, colour }, i) =>
      `<text x="${LEFT + 10 + i * 220}" y="${top + 16}" fill="${colour}">${name}</text>`,
  );
  return [
    `<text x="${LEFT}" y="${top - 8}" font-weight="bold">${title}</text>`,
    `<rect x="${LEFT}" y="${top}" width="${WIDTH - LEFT - 10}" height="${HEIGHT}" fill="none" stroke="#999"/>`,
    `<text x="${LEFT - 6}" y="${top + 10}" text-anchor="end">${most.toPrecision(2)}</text>`,
    `<text x="${LEFT - 6}" y="${top + HEIGHT}" text-anchor="end">0</text>`,
    ...lines.map(
      ({ values, colour }) =>
        `<polyline points="${points(values)}" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
    ),
    ...legend,
  ].join('\n');
}

/** Panels below each other; all axes begin at 0. `title` is for who cannot see it. */
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
