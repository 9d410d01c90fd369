// polar token NAME --scopes LIST
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { SCOPES } from '../../../services/common/access/scopes.ts';
import { newToken, parseTokens } from '../../../services/common/access/tokens.ts';
import { faulty, readText } from '../../../services/common/config/faults.ts';
import { type Command, textFlag, UsageError } from '../arguments.ts';
import { topologyOf } from '../mesh-clients.ts';
import { say, sayJson } from '../output/say.ts';

export const token: Command = {
  name: 'token',
  summary: 'make an access token and add it to the tokens file; it is printed, and kept nowhere',
  operands: ['NAME'],
  flags: {
    scopes: { type: 'string', value: 'LIST', help: `by commas, of ${SCOPES.join(', ')}` },
    file: { type: 'string', value: 'FILE', help: "default: the topology file's access.tokens_file" },
  },
  examples: [
    'polar token services --scopes node,read --file tokens.txt',
    'polar token trainer --scopes submit,read,consume,operate -c topology.yaml',
  ],
  async run(args) {
    const file = textFlag(args, 'file') ?? topologyOf(args).access.tokens_file;
    if (file === null) throw new UsageError('--file is needed: the topology has no access.tokens_file');
    const name = args.operands[0] ?? '';
    const scopes = (textFlag(args, 'scopes') ?? '').split(',').filter((scope) => scope !== '');
    const made = newToken(name, scopes);
    addLine(file, name, made.line);
    if (args.flags['json'] === true) sayJson({ name, scopes, token: made.token });
    else say(made.token);
    return 0;
  },
};

/** The file is whole at every moment, and its owner's alone. */
function addLine(file: string, name: string, line: string): void {
  const before = existsSync(file) ? readText(file, 'INVALID_REQUEST') : '# name scopes sha256\n';
  const known = before.replace(/#.*/g, '').trim() === '' ? [] : [...parseTokens(before, file).values()];
  if (known.some((one) => one.name === name)) {
    throw faulty('INVALID_REQUEST', file, [{ field: 'NAME', description: `${name} is there already` }]);
  }
  const part = `${file}.part`;
  try {
    writeFileSync(part, `${before.replace(/\n*$/, '\n')}${line}\n`, { mode: 0o600 });
    renameSync(part, file);
  } catch (error) {
    throw faulty('INVALID_REQUEST', file, [{ field: '(file)', description: (error as Error).message }]);
  }
}
