// Running a task on a local mesh that was just brought up, with live progress.
import { create } from '@bufbuild/protobuf';
import { SessionSchema } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RuntimeSpecSchema, type TaskSpec } from '../../gen/ts/polar/common/v1/task_pb.js';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { EXIT } from '../../services/common/exit-codes.ts';
import { printSessions, progressLines } from './commands/watch.ts';
import { credentialsFor } from './credentials.ts';
import type { LocalMesh } from './mesh/local-mesh.ts';
import { rolloutClient } from './mesh-clients.ts';
import { jsonOf } from './output/json.ts';
import { complain, progress, say, sayJson } from './output/say.ts';
import { addressOf } from './services.ts';
import { followTask, isComplete } from './watching.ts';

/** Submit under a fresh id, follow, print. Exit code 1 if a session has no trajectory. */
export async function runExample(
  mesh: LocalMesh,
  spec: TaskSpec,
  { json, signal }: { json: boolean; signal: AbortSignal },
): Promise<number> {
  spec.taskId = `${spec.taskId}-${Date.now().toString(36)}`;
  const unavailable = await bubblewrapFault(mesh);
  if (unavailable !== undefined && (spec.runtime?.backend ?? '') === '') {
    complain(`WARNING: ${unavailable}`);
    complain(
      'WARNING: so this example runs with runtime `process`, which isolates NOTHING: the harness sees the files, processes and network of this machine.',
    );
    spec.runtime ??= create(RuntimeSpecSchema);
    spec.runtime.backend = 'process';
  }
  const url = addressOf(mesh.local.topology, 'scheduler');
  await rolloutClient(url).submitTask({ spec }, { signal });
  (json ? progress : say)(
    `task ${spec.taskId}: ${spec.numSamples} sessions of harness ${spec.harness?.name}`,
  );
  const following = followTask(url, spec.taskId, progressLines(), signal);
  const sessions = await Promise.race([following, mesh.supervisor.failed]);
  if (json) sayJson({ task_id: spec.taskId, sessions: sessions.map((one) => jsonOf(SessionSchema, one)) });
  else printSessions(sessions);
  return isComplete(sessions) ? EXIT.ok : EXIT.failed;
}

/** Why its sandboxes cannot be made here; undefined where they can. */
async function bubblewrapFault(mesh: LocalMesh): Promise<string | undefined> {
  const url = addressOf(mesh.local.topology, 'runtime-prewarm');
  const client = createPlainClient(RuntimeService, url, credentialsFor(url));
  const { backends } = await client.listRuntimes({});
  const bubblewrap = backends.find(({ name }) => name === 'bubblewrap');
  return bubblewrap === undefined ? 'there is no bubblewrap here' : bubblewrap.unavailable?.message;
}
