// Starts the evaluator of one node.
import process from 'node:process';
import { configured, runService } from '../common/lifecycle.ts';
import { createLogger } from '../common/logger.ts';
import { readConfig } from './config.ts';
import { EvaluatorService } from './service.ts';

const config = configured(() => readConfig(process.env));
const log = createLogger('evaluator', config.logLevel, { node_id: config.node.id });
await runService(log, config.lifeline, (signal) => EvaluatorService.start(config, log, signal));
