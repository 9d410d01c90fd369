// The readers of logs, by SWE-bench's names.
import type { LogParser } from '../../common/specs/catalogue.ts';
import {
  readDoctestLog,
  readGoogletestLog,
  readJqLog,
  readMicropythonLog,
  readRedisLog,
} from './swebench-c.ts';
import { readDjangoLog } from './swebench-django.ts';
import {
  readBpmnLog,
  readChartLog,
  readEslintLog,
  readMarkedLog,
  readOpenlayersLog,
} from './swebench-failures.ts';
import {
  readCarbonLog,
  readEmotionLog,
  readGrommetLog,
  readNextCypressLog,
  readQuartoLog,
} from './swebench-files.ts';
import { readCypressLog, readLighthouseJsonLog, readPrismLog } from './swebench-json.ts';
import { readAntLog, readGradleLog, readMavenLog } from './swebench-jvm.ts';
import {
  readCargoLog,
  readGoLog,
  readJestJsonLog,
  readJestLog,
  readPhpunitLog,
  readTapLog,
  readVitestLog,
} from './swebench-lines.ts';
import {
  readCalypsoLog,
  readHighlightLog,
  readKarmaLog,
  readLighthouseMochaLog,
  readNextLog,
  readPlotlyLog,
} from './swebench-mocha.ts';
import { readP5Log } from './swebench-p5.ts';
import {
  readMatplotlibLog,
  readPydanticLog,
  readPytestLog,
  readPytestOptionsLog,
  readPytestV2Log,
  readSeabornLog,
} from './swebench-pytest.ts';
import { readCucumberLog, readMinitestLog, readRspecLog, readRubyUnitLog } from './swebench-ruby.ts';
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
  parse_log_redis: readRedisLog,
  parse_log_jq: readJqLog,
  parse_log_doctest: readDoctestLog,
  parse_log_micropython_test: readMicropythonLog,
  parse_log_googletest: readGoogletestLog,
  parse_log_gotest: readGoLog,
  parse_log_maven: readMavenLog,
  parse_log_ant: readAntLog,
  parse_log_gradle_custom: readGradleLog,
  parse_log_phpunit: readPhpunitLog,
  parse_log_minitest: readMinitestLog,
  parse_log_cucumber: readCucumberLog,
  parse_log_ruby_unit: readRubyUnitLog,
  parse_log_rspec_transformed_json: readRspecLog,
  parse_log_cargo: readCargoLog,
  parse_log_jest: readJestLog,
  parse_log_jest_json: readJestJsonLog,
  parse_log_vitest: readVitestLog,
  parse_log_tap: readTapLog,
  parse_log_karma: readKarmaLog,
  parse_log_calypso: readCalypsoLog,
  parse_log_carbon: readCarbonLog,
  parse_log_grommet: readGrommetLog,
  parse_log_emotion: readEmotionLog,
  parse_log_highlightjs: readHighlightLog,
  parse_log_prismjs: readPrismLog,
  parse_log_cypress: readCypressLog,
  parse_log_quarto_cli: readQuartoLog,
  parse_plotly_js: readPlotlyLog,
  parse_log_next_v1: readNextLog,
  parse_log_next_v2: readNextCypressLog,
  parse_log_lighthouse_mocha: readLighthouseMochaLog,
  parse_log_lighthouse_json: readLighthouseJsonLog,
  parse_log_chart_js: readChartLog,
  parse_log_marked: readMarkedLog,
  parse_log_p5js: readP5Log,
  parse_log_eslint: readEslintLog,
  parse_log_bpmn_js: readBpmnLog,
  parse_log_openlayers: readOpenlayersLog,
};
