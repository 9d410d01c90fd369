// Starts the llm-proxy of one node.
import process from 'node:process';
import { configured, runService } from '../common/lifecycle.ts';
import { createLogger } from '../common/logger.ts';
import { readConfig } from './config.ts';
import { LlmProxyService } from './service.ts';

const config = configured(() => readConfig(process.env));
const log = createLogger('llm-proxy', config.logLevel, { node_id: config.node.id });
await runService(log, config.lifeline, (signal) => LlmProxyService.start(config, log, signal));
