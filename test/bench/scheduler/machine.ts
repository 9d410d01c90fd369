// What a figure was measured on, and how it is told.
import { cpus } from 'node:os';

export const say = (text: string): void => void process.stdout.write(`${text}\n`);

export function aboutMachine(): string {
  const [first] = cpus();
  const model =
    first?.model
      .replace(/\(R\)|\(TM\)|Processor|\d+-Core/g, '')
      .replace(/\s+/g, ' ')
      .trim() ?? 'CPU';
  return `${model}, ${cpus().length} cores, Node.js ${process.version}; ${new Date().toISOString().slice(0, 10)}`;
}
