// The builder that a task asks for, by name or by path, on the calls of an attempt.
import type { JsonObject } from '@bufbuild/protobuf';
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { BUILDERS, type BuilderName, listed } from '../../common/specs/catalogue.ts';
import {
  type BuilderPolicies,
  builderConfigs,
  PLUGIN_PATH,
  pluginConfig,
} from '../../common/specs/strategies.ts';
import { assemble, type Build, build } from '../domain/build.ts';
import type { Call } from '../domain/call.ts';
import { carryOut, plannedCalls } from '../domain/plan.ts';
import { withPolicies } from '../domain/policies.ts';
import { builderUrl, loadPlugin, planOf } from './plugin.ts';

/** Where plug-ins are, and how long one may take. */
export interface Plugins {
  readonly plugins_dir?: string | undefined;
  readonly plugin_timeout_seconds: number;
}

/** A builder, ready to build any number of attempts. */
export interface Builder {
  readonly name: string;
  /** Whether it can build at all. Throws BUILDER_PLUGIN_INVALID, or BUILDER_PLUGIN_FAILED where loading takes too much. */
  load(signal: AbortSignal): Promise<void>;
  build(calls: readonly Call[], signal: AbortSignal): Promise<Build>;
}

/** per_request where no strategy is named. Throws UNKNOWN_BUILDER, INVALID_TASK or BUILDER_PLUGIN_INVALID. */
export async function builderOf(
  strategy: string | undefined,
  config: JsonObject | undefined,
  plugins: Plugins,
): Promise<Builder> {
  const name = strategy || 'per_request';
  if (!PLUGIN_PATH.test(name)) return named(name, config);
  return fromPlugin(
    name,
    await builderUrl(plugins.plugins_dir, name),
    config,
    plugins.plugin_timeout_seconds,
  );
}

/** A builder of the catalogue. */
function named(name: string, config: JsonObject | undefined): Builder {
  const known = BUILDERS.find((one): one is BuilderName => one === name);
  if (known === undefined) {
    throw new PolarError('UNKNOWN_BUILDER', `no builder ${name}; there are ${listed(BUILDERS)}`);
  }
  const policies = checkStrict(builderConfigs[known], config ?? {}, 'builder.config', 'INVALID_TASK');
  return { name: known, load: async () => {}, build: async (calls) => build(known, calls, policies) };
}

/** The module at a file: URL. Its policies hold before it sees the calls, and the length of traces after. */
export function fromPlugin(
  name: string,
  url: string,
  config: JsonObject | undefined,
  timeoutSeconds: number,
): Builder {
  const { options, ...rest } = checkStrict(pluginConfig, config ?? {}, 'builder.config', 'INVALID_TASK');
  const policies: BuilderPolicies = rest;
  const timeoutMs = timeoutSeconds * 1000;
  return {
    name,
    load: (signal) => loadPlugin(url, timeoutMs, signal),
    async build(given, signal) {
      const masked = withPolicies(given, policies);
      const plan = await planOf(url, plannedCalls(masked), options, timeoutMs, signal);
      const { calls, branches } = carryOut(plan, masked);
      return assemble(calls, branches, policies.max_trace_tokens);
    },
  };
}
