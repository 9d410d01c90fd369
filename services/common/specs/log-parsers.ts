// Which of SWE-bench's log parsers reads the tests of a repository: rows before its version 5 do not say. After the tables of
// swebench 5.0.2, and those of SWE-Gym for the repositories that it adds.
import { LOG_PARSERS, type LogParser } from './catalogue.ts';

/** Other names that rows have for them: one for each of these projects. */
const PROJECTS: Readonly<Partial<Record<LogParser, string>>> = {
  parse_log_pytest: 'astroid flask marshmallow pvlib pyvista sqlfluff xarray',
  parse_log_pytest_options: 'pydicom requests pylint',
  parse_log_pytest_v2: 'astropy scikit sphinx',
};

const REPOSITORIES: Readonly<Partial<Record<LogParser, readonly string[]>>> = {
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
};

const inverse = (names: Readonly<Record<string, readonly string[]>>): ReadonlyMap<string, LogParser> =>
  new Map(Object.entries(names).flatMap(([parser, all]) => all.map((one) => [one, parser as LogParser])));

const OF_REPOSITORY = inverse(REPOSITORIES);
const NAMED = inverse(
  Object.fromEntries(
    Object.entries(PROJECTS).map(([parser, projects]) => [
      parser,
      projects.split(' ').map((project) => `parse_log_${project}`),
    ]),
  ),
);

/** By a name of SWE-bench; undefined: none that is known. */
export const parserNamed = (name: string): LogParser | undefined =>
  LOG_PARSERS.find((one) => one === name) ?? NAMED.get(name);

/** By `owner/name`, in any case. */
export const parserOfRepository = (repository: string): LogParser | undefined =>
  OF_REPOSITORY.get(repository.toLowerCase());
