// polar cancel TASK or SESSION
import { asPolarError } from '../../../services/common/errors.ts';
import { type Command, URL_FLAGS } from '../arguments.ts';
import { at, rolloutClient, rolloutUrl } from '../mesh-clients.ts';
import { say, sayJson } from '../output/say.ts';
import { countsOf, stateName } from '../output/table.ts';

export const cancel: Command = {
  name: 'cancel',
  summary: 'end all sessions of a task that have not ended, or one session',
  operands: ['TASK-OR-SESSION'],
  flags: {
    ...URL_FLAGS,
    ahead: {
      type: 'boolean',
      help: 'also where there is no such task yet: its submit is refused for an hour',
    },
  },
  examples: [
    'polar cancel calculator',
    'polar cancel s-0123456789abcdef01234567-0',
    'polar cancel later --ahead',
  ],
  async run(args) {
    const url = rolloutUrl(args);
    const id = args.operands[0] ?? '';
    const json = args.flags['json'] === true;
    await at(url, cancelOne(url, id, args.flags['ahead'] === true, json));
    return 0;
  },
};

/** A task by its id, else a session by its own. */
async function cancelOne(url: string, id: string, ahead: boolean, json: boolean): Promise<void> {
  const client = rolloutClient(url);
  try {
    const { task } = await client.cancelTask({ taskId: id, ahead });
    const outcomes = task?.sessionsByOutcome ?? {};
    if (json) sayJson({ task_id: id, sessions_by_outcome: outcomes });
    else say(task === undefined ? `task ${id}: cancelled ahead` : `task ${id}: ${countsOf(outcomes)}`);
  } catch (error) {
    if (asPolarError(error).reason !== 'NOT_FOUND') throw error;
    const { session } = await client.cancelSession({ sessionId: id }).catch((second) => {
      throw asPolarError(second).reason === 'NOT_FOUND' ? error : second;
    });
    if (session === undefined) return;
    if (json) sayJson({ session_id: id, outcome: stateName(session).toLowerCase() });
    else say(`session ${id}: ${stateName(session).toLowerCase()}`);
  }
}
