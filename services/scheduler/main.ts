// Starts the scheduler.
import process from 'node:process';
import { configured, runService } from '../common/lifecycle.ts';
import { createLogger } from '../common/logger.ts';
import { readConfig } from './config.ts';
import { SchedulerService } from './service.ts';

const config = configured(() => readConfig(process.env));
const log = createLogger('scheduler', config.logLevel);
await runService(log, config.lifeline, (signal) => SchedulerService.start(config, log, signal));
