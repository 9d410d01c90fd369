// The `polar` command: finds the command, runs it, turns what it throws into one message and an exit code.
import process from 'node:process';
import { asPolarError } from '../../services/common/errors.ts';
import { readArguments, UsageError } from './arguments.ts';
import { COMMANDS } from './commands/index.ts';
import { useCertificatesOf } from './credentials.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { helpOf, overview } from './output/help.ts';
import { complain, say } from './output/say.ts';

const [name, ...rest] = process.argv.slice(2);
process.exitCode = await main();

async function main(): Promise<number> {
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    say(overview(COMMANDS));
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  const command = COMMANDS.find((one) => one.name === name);
  if (command === undefined) {
    complain(`unknown command ${name}; polar --help lists them`);
    return EXIT.usage;
  }
  try {
    const args = readArguments(command, rest);
    if (args.flags['help'] === true) {
      say(helpOf(command));
      return EXIT.ok;
    }
    useCertificatesOf(args);
    return await command.run(args);
  } catch (error) {
    if (error instanceof UsageError) {
      complain(`${error.message}; polar ${name} --help says more`);
      return EXIT.usage;
    }
    const { reason, message } = asPolarError(error);
    complain(`${reason}: ${message}`);
    return exitCodeOf(error);
  }
}
