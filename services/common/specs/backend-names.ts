// Names of runtime backends: those of the catalogue, and paths of plug-ins.
import { BACKENDS, listed } from './catalogue.ts';
import { PLUGIN_PATH } from './strategies.ts';

/** Backends that are known, and why no node has them. */
const NOT_OFFERED: Readonly<Record<string, string>> = {
  apptainer:
    "no node has apptainer: it could not be had from Debian, PyPI, npm or Go's module proxy, so that it is untried",
};

/** Why no node can have a backend of that name; undefined: one may. */
export function backendFault(name: string): string | undefined {
  if ((BACKENDS as readonly string[]).includes(name) || PLUGIN_PATH.test(name)) return undefined;
  const rest = "or the path of a plug-in below the node's plugins_dir";
  return `${NOT_OFFERED[name] ?? `unknown runtime ${name}`}; there are ${listed(BACKENDS)}, ${rest}`;
}
