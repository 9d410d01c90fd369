// Reading a command's flags and operands.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** Wrong use of a command. */
export class UsageError extends Error {}

export interface Flag {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** May be given more than once. */
  readonly multiple?: true;
  /** Name of the value in help, for strings. */
  readonly value?: string;
  readonly help: string;
}

export interface Command {
  readonly name: string;
  /** One line for the overview. */
  readonly summary: string;
  /** Operands in order, as shown: `FILE`, `[SESSION]`; the last one may be `FILE...`, one or more. */
  readonly operands: readonly string[];
  readonly flags: Readonly<Record<string, Flag>>;
  readonly examples: readonly string[];
  /** Resolves to the exit code. */
  run(args: Arguments): Promise<number>;
}

export interface Arguments {
  readonly operands: readonly string[];
  readonly flags: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;
}

/** What every command takes. */
export const COMMON_FLAGS = {
  config: {
    type: 'string',
    short: 'c',
    value: 'FILE',
    help: 'topology file; default: $POLAR_TOPOLOGY, else built-in defaults',
  },
  json: { type: 'boolean', help: 'print JSON lines instead of text' },
  help: { type: 'boolean', short: 'h', help: 'show this help' },
} as const satisfies Record<string, Flag>;

/** For commands that call a mesh with TLS. */
export const TLS_FLAGS = {
  ca: {
    type: 'string',
    value: 'FILE',
    help: "authority of the mesh's certificates; default: $POLAR_CA_FILE, else the topology file's, else the system's",
  },
  cert: {
    type: 'string',
    value: 'FILE',
    help: "certificate of this side, where the mesh asks for one; default: $POLAR_CERT_FILE, else the topology file's",
  },
  key: { type: 'string', value: 'FILE', help: 'its key; default: $POLAR_KEY_FILE' },
} as const satisfies Record<string, Flag>;

/** For commands that call a running mesh. */
export const URL_FLAGS = {
  ...TLS_FLAGS,
  'rollout-url': {
    type: 'string',
    value: 'URL',
    help: 'the scheduler, or several by commas; default: that of -c FILE, else $POLAR_ROLLOUT_URL, else of $POLAR_TOPOLOGY, else the one that `polar up` runs in this folder, else http://127.0.0.1:8080',
  },
} as const satisfies Record<string, Flag>;

/** For commands that read trajectories. */
export const TRAJECTORY_FLAGS = {
  'trajectory-url': {
    type: 'string',
    value: 'URL',
    help: 'the reconstructor; default: that of -c FILE, else $POLAR_TRAJECTORY_URL, else of $POLAR_TOPOLOGY, else the one that `polar up` runs in this folder, else http://127.0.0.1:8070',
  },
} as const satisfies Record<string, Flag>;

export function readArguments(command: Command, argv: readonly string[]): Arguments {
  const known: Record<string, Flag> = { ...command.flags, ...COMMON_FLAGS };
  const options: ParseArgsOptionsConfig = {};
  for (const [name, { type, short, multiple = false }] of Object.entries(known)) {
    options[name] = { type, multiple, ...(short !== undefined && { short }) };
  }
  const { values, positionals } = parsed(argv, options);
  const flags = values as Arguments['flags'];
  if (flags['help'] !== true) {
    checkOperands(command, positionals);
    checkValues(flags);
  }
  return { operands: positionals, flags };
}

function parsed(argv: readonly string[], options: ParseArgsOptionsConfig): ReturnType<typeof parseArgs> {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    const { message } = error as Error;
    const [first] = message.split(/\.\s/);
    const isDash = message.includes('starting with a dash');
    throw new UsageError(isDash ? `${first}: what begins with a dash is given as --name=-value` : first);
  }
}

function checkOperands({ operands }: Command, given: readonly string[]): void {
  const needed = operands.filter((operand) => !operand.startsWith('['));
  const missing = needed[given.length]?.replace('...', '');
  if (missing !== undefined) throw new UsageError(`${missing} is missing`);
  const many = operands.at(-1)?.endsWith('...') === true;
  if (!many && given.length > operands.length) throw new UsageError(`unexpected ${given[operands.length]}`);
  const nameAt = (i: number): string | undefined => operands[Math.min(i, operands.length - 1)];
  const empty = given.findIndex((one, i) => one === '' && nameAt(i) !== OF_OTHERS);
  if (empty >= 0) throw new UsageError(`${nameAt(empty)?.replace(/[[\].]/g, '')} is empty`);
}

/** Operands that are another program's. */
export const OF_OTHERS = '[ARGUMENT]...';

/** As from a variable of a script that is not set: the default, or 0, would be another thing than was meant. */
function checkValues(flags: Arguments['flags']): void {
  for (const [name, value] of Object.entries(flags)) {
    if ([value].flat().includes('')) throw new UsageError(`--${name} is empty`);
  }
}

/** The values of a string flag that may be given more than once. */
export const textFlags = (args: Arguments, name: string): string[] => {
  const values = args.flags[name];
  return Array.isArray(values) ? values.filter((value) => typeof value === 'string') : [];
};

/** The value of a string flag. */
export const textFlag = (args: Arguments, name: string): string | undefined => {
  const value = args.flags[name];
  return typeof value === 'string' ? value : undefined;
};

/** The same of a file that is written and not a stream: `-` would be a file of that name. */
export function fileFlag(args: Arguments, name: string): string | undefined {
  const file = textFlag(args, name);
  if (file === '-') throw new UsageError(`--${name} must be the name of a file, not -`);
  return file;
}

/** --attempt; 0 where it is not given. */
export function attemptFlag(args: Arguments): number {
  const text = textFlag(args, 'attempt');
  if (text === undefined) return 0;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError('--attempt must be a number from 1');
}
