// Any command. The instruction is in `{{instruction}}`, $POLAR_INSTRUCTION and the file $POLAR_INSTRUCTION_FILE.
import { PolarError } from '../../common/errors.ts';
import { COMMAND_LINE_BYTES_MAX } from '../../common/limits.ts';
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { fillInstruction } from '../domain/shell.ts';
import type { Adapter, HarnessContext } from './adapter.ts';

const COMMAND_FILE = `${SESSION_DIR}/harness-command.sh`;

export const shell: Adapter = {
  name: 'shell',
  version: '',
  dialect: '',
  install: undefined,
  transcripts: [],
  skillsDir: undefined,
  files(context) {
    const command = commandOf(context);
    return fits(command) ? [] : [{ path: COMMAND_FILE, content: command }];
  },
  command(context) {
    const command = commandOf(context);
    const cwd = context.step?.cwd ?? '';
    return {
      // What one argument cannot hold is run from a file.
      argv: fits(command) ? ['sh', '-c', command] : ['sh', COMMAND_FILE],
      env: context.step?.env ?? {},
      ...(cwd !== '' && { cwd }),
    };
  },
  readExit,
};

function commandOf({ step, instruction }: HarnessContext): string {
  if (step === undefined) {
    throw new PolarError('INVALID_TASK', 'harness.command: the shell harness needs a command');
  }
  return fillInstruction(step.command, instruction);
}

const fits = (command: string): boolean => Buffer.byteLength(command) <= COMMAND_LINE_BYTES_MAX;
