// The readers of logs, by SWE-bench's names.
import type { LogParser } from '../../common/specs/catalogue.ts';
import { readDjangoLog } from './swebench-django.ts';
import {
  readMatplotlibLog,
  readPydanticLog,
  readPytestLog,
  readPytestOptionsLog,
  readPytestV2Log,
  readSeabornLog,
} from './swebench-pytest.ts';
import { readSympyLog } from './swebench-sympy.ts';
import type { Statuses } from './swebench-words.ts';

export const LOG_READERS: Readonly<Record<LogParser, (log: string) => Statuses>> = {
  parse_log_pytest: readPytestLog,
  parse_log_pytest_options: readPytestOptionsLog,
  parse_log_pytest_v2: readPytestV2Log,
  parse_log_pytest_pydantic: readPydanticLog,
  parse_log_django: readDjangoLog,
  parse_log_seaborn: readSeabornLog,
  parse_log_sympy: readSympyLog,
  parse_log_matplotlib: readMatplotlibLog,
};
