// Users of a container.
import { SANDBOX_UID } from '../../host/host.ts';

/** Users of a container: its own first process, and commands. */
export interface ContainerUsers {
  readonly own: number;
  readonly commands: number;
}

/** Where the engine maps users away, root inside is nobody outside; else commands are a user that the host does not have. */
export const usersOf = (remapped: boolean): ContainerUsers =>
  remapped ? { own: 65_533, commands: 0 } : { own: SANDBOX_UID + 1, commands: SANDBOX_UID };
