// All commands, in the order of the help.
import type { Command } from '../arguments.ts';
import { audit } from './audit.ts';
import { cancel } from './cancel.ts';
import { capture } from './capture.ts';
import { dashboard } from './dashboard.ts';
import { drain } from './drain.ts';
import { exportSession } from './export.ts';
import { logs } from './logs.ts';
import { queues } from './queues.ts';
import { rebuild } from './rebuild.ts';
import { regrade } from './regrade.ts';
import { retry } from './retry.ts';
import { serve } from './serve.ts';
import { serveGateway, serveRollout } from './serve-group.ts';
import { spans } from './spans.ts';
import { status } from './status.ts';
import { submit } from './submit.ts';
import { token } from './token.ts';
import { up } from './up.ts';
import { watch } from './watch.ts';

export const COMMANDS: readonly Command[] = [
  up,
  submit,
  capture,
  status,
  watch,
  logs,
  exportSession,
  rebuild,
  regrade,
  audit,
  spans,
  cancel,
  retry,
  queues,
  drain,
  dashboard,
  token,
  serve,
  serveRollout,
  serveGateway,
];
