// polar token NAME --scopes LIST
import {
  chmodSync,
  chownSync,
  existsSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { SCOPES } from '../../../services/common/access/scopes.ts';
import { newToken, parseTokens } from '../../../services/common/access/tokens.ts';
import { faulty, readText } from '../../../services/common/config/faults.ts';
import { type Command, textFlag, UsageError } from '../arguments.ts';
import { say, sayJson } from '../output/say.ts';
import { topologyOf } from '../topology-file.ts';

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

/** The file is whole at every moment. A new one is its owner's alone; one that is there stays whose it is. */
function addLine(named: string, name: string, line: string): void {
  const isNew = !existsSync(named);
  const file = isNew ? named : realpathSync(named);
  const part = `${file}.part`;
  const orFault = <T>(act: () => T, hint = ''): T => {
    try {
      return act();
    } catch (error) {
      const description = (error as Error).message + hint;
      throw faulty('INVALID_REQUEST', named, [{ field: '(file)', description }]);
    }
  };
  // One at a time: what another one adds meanwhile would be lost.
  const hint = ': where no other `polar token` writes there now, remove it';
  orFault(() => writeFileSync(part, '', { mode: 0o600, flag: 'wx' }), existsSync(part) ? hint : '');
  try {
    const text = withLine(isNew ? undefined : readText(file, 'INVALID_REQUEST'), named, name, line);
    orFault(() => {
      writeFileSync(part, text);
      if (!isNew) keepOwner(file, part);
      renameSync(part, file);
    });
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
}

function withLine(before = '# name scopes sha256\n', file: string, name: string, line: string): string {
  const known = before.replace(/#.*/g, '').trim() === '' ? [] : [...parseTokens(before, file).values()];
  if (known.some((one) => one.name === name)) {
    throw faulty('INVALID_REQUEST', file, [{ field: 'NAME', description: `${name} is there already` }]);
  }
  return `${before.replace(/\n*$/, '\n')}${line}\n`;
}

/** Services that read the file may be another user's. */
function keepOwner(file: string, part: string): void {
  const { uid, gid, mode } = statSync(file);
  chownSync(part, uid, gid);
  chmodSync(part, mode & 0o777);
}
