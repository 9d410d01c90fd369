import { expect } from 'chai';
import { withoutReports } from './pytest-reports.ts';

const starts = '============================= test session starts ==============================';
const passes = '==================================== PASSES ====================================';
const summary = '=========================== short test summary info ============================';
const captured = '----------------------------- Captured stdout call -----------------------------';
const ends = (count: string): string =>
  `============================== ${count} in 0.05s ===============================`;

describe('reports of pytest', () => {
  const inner = [
    ...[
      starts,
      'collected 1 item',
      '=================================== FAILURES ===================================',
    ],
    ...['E       assert 0', summary, 'FAILED test_x.py::inner - assert 0', ends('1 failed')],
  ];
  const bare = [starts, 'collected 0 items', ends('no tests ran')];
  const told = [summary, 'PASSED test_plugin.py::test_outer', ends('1 passed')];

  it('hold the runs that its tests have made of it, and what these say at their end', () => {
    for (const before of [[starts], []]) {
      const whole = [...before, passes, captured, ...inner, 'ERROR x', ...bare, ...inner, ...told];
      expect(withoutReports(whole)).to.deep.equal(told);
    }
  });

  it('are those of one run after another, with and without a word of their beginning and their end', () => {
    const quiet = [summary, 'PASSED test_q.py::test_quiet', '1 passed in 0.01s'];
    const cut = [summary, 'FAILED test_c.py::test_cut'];
    const runs = [passes, 'a', ...quiet, passes, 'b', ...quiet, starts, 'c', ...cut, starts, 'd', ...told];
    expect(withoutReports(runs)).to.deep.equal([...quiet, ...quiet, ...cut, ...told]);
  });

  it('end where a run says how it went, however long it took', () => {
    for (const end of [
      ends('1 failed, 2 passed, 1 warning'),
      '======= 3 passed in 65.01s (0:01:05) =======',
      '===== 1 passed in 0.01 seconds =====',
      ends('no tests collected (1 deselected)'),
    ]) {
      const whole = [starts, passes, starts, 'x', summary, 'FAILED y', end, 'z', ...told];
      expect(withoutReports(whole), end).to.deep.equal(told);
    }
  });
});
