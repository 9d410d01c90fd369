// Starts a reconstructor.
import process from 'node:process';
import { configured, runService } from '../common/lifecycle.ts';
import { createLogger } from '../common/logger.ts';
import { readConfig } from './config.ts';
import { ReconstructorService } from './service.ts';

const config = configured(() => readConfig(process.env));
const log = createLogger('reconstructor', config.logLevel);
await runService(log, config.lifeline, (signal) => ReconstructorService.start(config, log, signal));
