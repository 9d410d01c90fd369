// What all sandboxes with a root file system of their own share, of one manager and one launcher.

import type { Cell } from '../../containment/containment.ts';
import type { Command, CommandResult, OutputSink } from '../../domain/command.ts';
import { deviceFilesOf } from '../../domain/gpus.ts';
import type { LaunchOptions } from '../../domain/launch-options.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import type { NetnsBroker } from '../../host/netns-broker.ts';
import type { BoxSpec } from '../backend.ts';
import { networkEnv } from '../network.ts';
import { type Launcher, launchInRoot } from './launch.ts';
import type { LayerStore } from './layer-store.ts';

export interface BoxLaunch {
  readonly spec: BoxSpec;
  /** The sandbox's own folder. */
  readonly folder: string;
  /** Everything before the launcher's arguments. */
  readonly prefix: readonly string[];
  readonly command: Command;
  readonly options: Pick<LaunchOptions, 'root' | 'readOnly' | 'readOnlyTry'>;
}

export interface BoxParts {
  readonly host: Host;
  readonly launcher: Launcher;
  readonly layers: LayerStore;
  /** For the processes of one command. */
  openCell(spec: BoxSpec): Cell;
  launch(launch: BoxLaunch, sink: OutputSink, signal: AbortSignal): Promise<CommandResult>;
}

export function boxParts(
  host: Host,
  launcher: Launcher,
  layers: LayerStore,
  broker: NetnsBroker,
  proxy: ProxyConnect,
): BoxParts {
  let launches = 0;
  const openCell = ({ id, limits }: BoxSpec): Cell => host.containment.open(`${id}.${++launches}`, limits);
  return {
    host,
    launcher,
    layers,
    openCell,
    async launch({ spec, folder, prefix, command, options }, sink, signal) {
      await host.showMounts(command.mounts);
      const env = { ...launcher.baseEnv, ...networkEnv(command), ...command.env };
      const idMap = host.isRoot ? 'outside' : 'own';
      const devices = command.gpus === undefined ? [] : deviceFilesOf(command.gpus);
      const all = { ...options, devices, cwd: command.cwd, env, idMap } as const;
      return await launchInRoot(
        { launcher, openCell: () => openCell(spec), folder, prefix, options: all, command, broker, proxy },
        sink,
        signal,
      );
    },
  };
}
