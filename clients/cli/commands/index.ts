// All commands, in the order of the help.
import type { Command } from '../arguments.ts';
import { cancel } from './cancel.ts';
import { exportSession } from './export.ts';
import { serve } from './serve.ts';
import { serveGateway, serveRollout } from './serve-group.ts';
import { status } from './status.ts';
import { submit } from './submit.ts';
import { up } from './up.ts';
import { watch } from './watch.ts';

export const COMMANDS: readonly Command[] = [
  up,
  submit,
  status,
  watch,
  exportSession,
  cancel,
  serve,
  serveRollout,
  serveGateway,
];
