// A package from PyPI as the tests install it: a wheel that holds next to nothing, made on the spot.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const WHEEL = 'polar_test_harness-1.0.0-py3-none-any.whl';
const MAKE = `
import sys, zipfile
info = "polar_test_harness-1.0.0.dist-info/"
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("polar_test_harness/cli.py", "")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: polar-test-harness\\nVersion: 1.0.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "")
`;

/** Makes it in the folder; how an adapter installs it. */
export function makeWheel(folder: string) {
  const wheel = join(folder, WHEEL);
  execFileSync('python3', ['-c', MAKE, wheel]);
  const requirements = join(folder, 'list.txt');
  writeFileSync(requirements, `${wheel}\n`);
  return { name: 'polar-test-harness', version: '1.0.0', entry: 'polar_test_harness/cli.py', requirements };
}
