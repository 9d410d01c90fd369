// All cases, in the order of the document.
import { CASE_NAMES, type Case } from './case.ts';
import { compaction, overflows } from './context.ts';
import { faults } from './faults.ts';
import {
  edit,
  longOutput,
  parallelCalls,
  reasoning,
  resume,
  silence,
  subAgents,
  systemFirst,
} from './work.ts';

const all = [
  ...[edit, parallelCalls, reasoning, longOutput, silence],
  ...faults,
  ...overflows,
  ...[compaction, subAgents, resume, systemFirst],
];

export const CASES: readonly Case[] = CASE_NAMES.map((name) => {
  const found = all.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no case ${name}`);
  return found;
});
