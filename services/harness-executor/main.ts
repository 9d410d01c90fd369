// Starts the harness executor of one node.
import process from 'node:process';
import { configured, runService } from '../common/lifecycle.ts';
import { createLogger } from '../common/logger.ts';
import { readConfig } from './config.ts';
import { HarnessExecutorService } from './service.ts';

const config = configured(() => readConfig(process.env));
const log = createLogger('harness-executor', config.logLevel, { node_id: config.node.id });
await runService(log, config.lifeline, (signal) => HarnessExecutorService.start(config, log, signal));
