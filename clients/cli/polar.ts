// What `polar` does with its arguments: finds the command, runs it, turns what it throws into one message and an exit code.
import { asPolarError } from '../../services/common/errors.ts';
import { EXIT, exitCodeOf } from '../../services/common/exit-codes.ts';
import { readArguments, UsageError } from './arguments.ts';
import { COMMANDS } from './commands/index.ts';
import { useCertificatesOf } from './credentials.ts';
import { helpOf, overview, version } from './output/help.ts';
import { complain, say } from './output/say.ts';
import { Stopped } from './stops.ts';

/** Returns the exit code. */
export async function polar([name, ...rest]: readonly string[]): Promise<number> {
  if (name === '--version') {
    say(version());
    return EXIT.ok;
  }
  // `polar help COMMAND` is `polar COMMAND --help`.
  const [wanted, flags] = name === 'help' && rest[0] !== undefined ? [rest[0], ['--help']] : [name, rest];
  if (wanted === undefined || wanted === 'help' || wanted === '--help' || wanted === '-h') {
    say(overview(COMMANDS));
    return wanted === undefined ? EXIT.usage : EXIT.ok;
  }
  const command = COMMANDS.find((one) => one.name === wanted);
  if (command === undefined) {
    complain(`unknown command ${wanted}; polar --help lists them`);
    return EXIT.usage;
  }
  try {
    const args = readArguments(command, flags);
    if (args.flags['help'] === true) {
      say(helpOf(command));
      return EXIT.ok;
    }
    useCertificatesOf(args);
    return await command.run(args);
  } catch (error) {
    if (error instanceof UsageError) {
      complain(`${error.message}; polar ${wanted} --help says more`);
      return EXIT.usage;
    }
    const { reason, message } = asPolarError(error);
    complain(`${reason}: ${message}`);
    return error instanceof Stopped ? error.exitCode : exitCodeOf(error);
  }
}
