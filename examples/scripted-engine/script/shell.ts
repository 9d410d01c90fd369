// The same deeds as shell commands, for harnesses that have a shell and nothing else.
import type { ScriptCall } from './schema.ts';

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export function asShell(wanted: Exclude<ScriptCall, { tool: string }>): string {
  if ('shell' in wanted) return wanted.shell;
  if ('read' in wanted) return `cat ${quoted(wanted.read)}`;
  if ('write' in wanted) return hereDocument(`cat > ${quoted(wanted.write.path)}`, wanted.write.content);
  return hereDocument('python3 -', editProgram(wanted.edit));
}

function hereDocument(command: string, text: string): string {
  let mark = 'END';
  while (text.split('\n').includes(mark)) mark += '_';
  return `${command} <<'${mark}'\n${text.endsWith('\n') ? text : `${text}\n`}${mark}`;
}

function editProgram(edit: { path: string; old: string; new: string }): string {
  // JSON is a Python literal too, as long as it is ASCII.
  const literal = (text: string): string => JSON.stringify(text).replaceAll(/[^\x20-\x7e]/gu, escaped);
  // A harness may run the calls of one reply at once.
  return [
    'import fcntl',
    `path, old, new = ${literal(edit.path)}, ${literal(edit.old)}, ${literal(edit.new)}`,
    'with open(path, "r+") as file:',
    '    fcntl.flock(file, fcntl.LOCK_EX)',
    '    text = file.read()',
    '    assert text.count(old) == 1, f"{text.count(old)} places match"',
    '    file.seek(0)',
    '    file.truncate()',
    '    file.write(text.replace(old, new))',
  ].join('\n');
}

function escaped(char: string): string {
  const code = (char.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
}
