// The `polar` command as a process.
import process from 'node:process';
import { EXIT } from '../../services/common/exit-codes.ts';
import { mindReaders } from './output/streams.ts';
import { polar } from './polar.ts';

const hasEnough = mindReaders();
const code = await polar(process.argv.slice(2));
process.exitCode = hasEnough() ? EXIT.ok : code;
