// All rules by name. What Biome can check is in biome.json.
import { functionLength } from './function-length.ts';
import {
  contextAsType,
  linksExist,
  noDeadFiles,
  oneRpcOneFile,
  readmes,
  sameLayout,
} from './structure-rules.ts';
import {
  fileLength,
  natsNamesInOnePlace,
  noLeftOutTests,
  noMachinePaths,
  noMarks,
  noRegistryHosts,
  noResolvedInLock,
  noSynonyms,
  pureDomain,
} from './text-rules.ts';
import type { Rule } from './tree.ts';
import { noUnusedExports } from './unused-exports.ts';

export const RULES = {
  fileLength,
  functionLength,
  noMarks,
  noLeftOutTests,
  noMachinePaths,
  noRegistryHosts,
  noResolvedInLock,
  noSynonyms,
  natsNamesInOnePlace,
  pureDomain,
  sameLayout,
  oneRpcOneFile,
  readmes,
  contextAsType,
  linksExist,
  noDeadFiles,
  noUnusedExports,
} satisfies Record<string, Rule>;
