// Names of runtime backends: those of the catalogue, and paths of plug-ins.
import { BACKENDS, listed } from './catalogue.ts';
import { PLUGIN_PATH } from './strategies.ts';

/** Why no node can have a backend of that name; undefined: one may. */
export function backendFault(name: string): string | undefined {
  if ((BACKENDS as readonly string[]).includes(name) || PLUGIN_PATH.test(name)) return undefined;
  const rest = "or the path of a plug-in below the node's plugins_dir";
  return `unknown runtime ${name}; there are ${listed(BACKENDS)}, ${rest}`;
}
