// What all bubblewrap sandboxes of a manager share.

import type { Cell } from '../../containment/containment.ts';
import type { BwrapOptions } from '../../domain/bwrap-args.ts';
import type { Command, CommandResult, OutputSink } from '../../domain/command.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import type { NetnsBroker } from '../../host/netns-broker.ts';
import type { BoxSpec } from '../backend.ts';
import { networkEnv } from '../network.ts';
import { launchBwrap } from './launch.ts';
import type { LayerStore } from './layer-store.ts';

export interface BoxLaunch {
  readonly spec: BoxSpec;
  /** The sandbox's own folder. */
  readonly folder: string;
  /** Everything before bwrap's arguments. */
  readonly prefix: readonly string[];
  readonly command: Command;
  readonly options: Pick<BwrapOptions, 'root' | 'readOnly' | 'readOnlyTry'>;
}

export interface BubblewrapParts {
  readonly host: Host;
  /** Path of the program. */
  readonly bwrap: string;
  readonly layers: LayerStore;
  /** For the processes of one command. */
  openCell(spec: BoxSpec): Cell;
  launch(launch: BoxLaunch, sink: OutputSink, signal: AbortSignal): Promise<CommandResult>;
}

const BASE_ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  USER: 'root',
  LANG: 'C.UTF-8',
};

export function bubblewrapParts(
  host: Host,
  bwrap: string,
  layers: LayerStore,
  seccompFile: string,
  broker: NetnsBroker,
  proxy: ProxyConnect,
): BubblewrapParts {
  let launches = 0;
  const openCell = ({ id, limits }: BoxSpec): Cell => host.containment.open(`${id}.${++launches}`, limits);
  return {
    host,
    bwrap,
    layers,
    openCell,
    async launch({ spec, folder, prefix, command, options }, sink, signal) {
      const cell = openCell(spec);
      const env = { ...BASE_ENV, ...networkEnv(command), ...command.env };
      const idMap = host.isRoot ? 'outside' : 'own';
      const all = { ...options, cwd: command.cwd, env, idMap } as const;
      return await launchBwrap(
        { cell, folder, prefix, options: all, command, seccompFile, broker, proxy },
        sink,
        signal,
      );
    },
  };
}
