// Which of SWE-bench's log parsers reads the tests of a repository: rows before its version 5 do not say. After the tables of
// swebench 5.0.2, and those of SWE-Gym for the repositories that it adds.
import { LOG_PARSERS, type LogParser } from './catalogue.ts';
import { PARSERS_BY_ROW, type ParserByRow } from './log-parsers-by-row.ts';

/** By SWE-bench's name: a parser, or one that a row's own columns choose. */
export type NamedParser = LogParser | ParserByRow;
const NAMED_PARSERS: readonly NamedParser[] = [...LOG_PARSERS, ...PARSERS_BY_ROW];

/** Other names that rows have for them: one for each of these projects. */
const PROJECTS: Readonly<Partial<Record<LogParser, string>>> = {
  parse_log_pytest: 'astroid flask marshmallow pvlib pyvista sqlfluff xarray',
  parse_log_pytest_options: 'pydicom requests pylint',
  parse_log_pytest_v2: 'astropy scikit sphinx',
  parse_log_carbon: 'lighthouse_jest prettier react_pdf scratch_gui',
};

const REPOSITORIES: Readonly<Partial<Record<NamedParser, readonly string[]>>> = {
  parse_log_pytest: [
    'marshmallow-code/marshmallow',
    'pallets/flask',
    'pvlib/pvlib-python',
    'pydata/xarray',
    'pylint-dev/astroid',
    'pytest-dev/pytest',
    'pyvista/pyvista',
    'sqlfluff/sqlfluff',
    'bokeh/bokeh',
    'conan-io/conan',
    'dask/dask',
    'facebookresearch/hydra',
    'getmoto/moto',
    'hypothesisworks/hypothesis',
    'iterative/dvc',
    'mne-tools/mne-python',
    'modin-project/modin',
    'pandas-dev/pandas',
    'project-monai/monai',
    'python/mypy',
  ],
  parse_log_pytest_options: ['psf/requests', 'pydicom/pydicom', 'pylint-dev/pylint'],
  parse_log_pytest_v2: ['astropy/astropy', 'scikit-learn/scikit-learn', 'sphinx-doc/sphinx'],
  parse_log_django: ['django/django'],
  parse_log_seaborn: ['mwaskom/seaborn'],
  parse_log_sympy: ['sympy/sympy'],
  parse_log_matplotlib: ['matplotlib/matplotlib'],
  parse_log_pytest_pydantic: ['pydantic/pydantic'],
  parse_log_redis: ['redis/redis', 'valkey-io/valkey'],
  parse_log_jq: ['jqlang/jq'],
  parse_log_doctest: ['nlohmann/json'],
  parse_log_micropython_test: ['micropython/micropython'],
  parse_log_googletest: ['fmtlib/fmt'],
  parse_log_gotest: [
    'caddyserver/caddy',
    'gin-gonic/gin',
    'gohugoio/hugo',
    'hashicorp/terraform',
    'prometheus/prometheus',
  ],
  parse_log_maven: ['apache/druid', 'google/gson', 'javaparser/javaparser'],
  parse_log_ant: ['projectlombok/lombok'],
  parse_log_gradle_custom: ['apache/lucene', 'reactivex/rxjava'],
  parse_log_phpunit: [
    'briannesbitt/carbon',
    'laravel/framework',
    'php-cs-fixer/php-cs-fixer',
    'phpoffice/phpspreadsheet',
  ],
  parse_log_jekyll: ['jekyll/jekyll'],
  parse_log_ruby_unit: ['faker-ruby/faker', 'fluent/fluentd'],
  parse_log_rspec_transformed_json: ['fastlane/fastlane', 'jordansissel/fpm', 'rubocop/rubocop'],
  parse_log_cargo: [
    'astral-sh/ruff',
    'burntsushi/ripgrep',
    'nushell/nushell',
    'sharkdp/bat',
    'tokio-rs/axum',
    'tokio-rs/tokio',
    'uutils/coreutils',
  ],
  parse_log_jest: ['babel/babel', 'facebook/docusaurus'],
  parse_log_immutable_js: ['immutable-js/immutable-js'],
  parse_log_vitest: ['vuejs/core'],
  parse_log_tap: ['axios/axios', 'mrdoob/three.js'],
  parse_log_karma: ['preactjs/preact'],
  parse_log_calypso: ['automattic/wp-calypso'],
  parse_log_carbon: [
    'carbon-design-system/carbon',
    'diegomura/react-pdf',
    'prettier/prettier',
    'scratchfoundation/scratch-gui',
  ],
  parse_log_grommet: ['grommet/grommet'],
  parse_log_emotion: ['emotion-js/emotion'],
  parse_log_highlightjs: ['highlightjs/highlight.js'],
  parse_log_prismjs: ['prismjs/prism'],
  parse_log_cypress: ['cypress-io/cypress'],
  parse_log_quarto_cli: ['quarto-dev/quarto-cli'],
  parse_plotly_js: ['plotly/plotly.js'],
  parse_log_next: ['alibaba-fusion/next'],
  parse_log_lighthouse: ['googlechrome/lighthouse'],
  parse_log_chart_js: ['chartjs/chart.js'],
  parse_log_marked: ['markedjs/marked'],
  parse_log_p5js: ['processing/p5.js'],
  parse_log_eslint: ['eslint/eslint'],
  parse_log_bpmn_js: ['bpmn-io/bpmn-js'],
  parse_log_openlayers: ['openlayers/openlayers'],
};

/** Of these a log tells failures alone. */
const TELL_FAILURES: readonly string[] = [
  'bpmn-io/bpmn-js',
  'chartjs/chart.js',
  'eslint/eslint',
  'markedjs/marked',
  'openlayers/openlayers',
  'processing/p5.js',
];

function inverse<P extends NamedParser>(
  names: Readonly<Partial<Record<P, readonly string[]>>>,
): Map<string, P> {
  const all = Object.entries(names) as [P, readonly string[]][];
  return new Map(all.flatMap(([parser, ofIt]) => ofIt.map((one) => [one, parser] as const)));
}

const OF_REPOSITORY = inverse(REPOSITORIES);
const NAMED = inverse<LogParser>(
  Object.fromEntries(
    Object.entries(PROJECTS).map(([parser, projects]) => [
      parser,
      projects.split(' ').map((project) => `parse_log_${project}`),
    ]),
  ),
);

/** By a name of SWE-bench; undefined: none that is known. */
export const parserNamed = (name: string): NamedParser | undefined =>
  NAMED_PARSERS.find((one) => one === name) ?? NAMED.get(name);

/** By `owner/name`, in any case. */
export const parserOfRepository = (repository: string): NamedParser | undefined =>
  OF_REPOSITORY.get(repository.toLowerCase());

/** Whether rows of a repository that do not say are of `fail_only`. */
export const tellsFailuresAlone = (repository: string): boolean =>
  TELL_FAILURES.includes(repository.toLowerCase());
