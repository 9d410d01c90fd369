// Starts runtime-prewarm of one node.
import process from 'node:process';
import { configured, runService } from '../common/lifecycle.ts';
import { createLogger } from '../common/logger.ts';
import { readConfig } from './config.ts';
import { closeInheritedDescriptors } from './host/descriptors.ts';
import { RuntimePrewarmService } from './service.ts';

closeInheritedDescriptors();
const config = configured(() => readConfig(process.env));
const log = createLogger('runtime-prewarm', config.logLevel, { node_id: config.node.id });
await runService(log, config.lifeline, (signal) => RuntimePrewarmService.start(config, log, signal));
