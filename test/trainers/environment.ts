// The Python environment of trainers: torch, transformers, TRL and verl, without a GPU's libraries.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PythonPackages, pythonWith } from '../engines/setup/python.ts';

const ROOT = join(import.meta.dirname, '../..');
const REQUIREMENTS = join(ROOT, 'examples/train_cpu/requirements.txt');

/** What torch asks for and a CPU has no use of: 4 GB. */
const GPU = [
  'cuda-bindings',
  'cuda-toolkit',
  'nvidia-cudnn-cu13',
  'nvidia-cusparselt-cu13',
  'nvidia-nccl-cu13',
  'nvidia-nvshmem-cu13',
  'triton',
];

/** What verl asks for and its agent loops have no use of. */
const UNUSED = ['wandb', 'tensorboard', 'pybind11', 'pylatexenc'];

/** verl asks for an older one than TRL does; what is used of it is in both. */
const TRANSFORMERS = 'transformers==5.19.0';

const packages = (): PythonPackages => ({
  // Beside the engines, as it is no engine.
  name: '../trainers',
  packages: readFileSync(REQUIREMENTS, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#')),
  overrides: [TRANSFORMERS, ...[...GPU, ...UNUSED].map((name) => `${name}; sys_platform == 'never'`)],
  afterwards: join(ROOT, 'test/engines/setup/torch-without-cuda.py'),
});

/** Its python; made at the first call. */
export const trainersPython = (): Promise<string> => pythonWith(packages());
