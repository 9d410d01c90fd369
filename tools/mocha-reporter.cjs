// mocha's spec reporter, for tools/test.mjs: what failed is not shown at once but written, with the counts, as JSON into
// the file of option `output`; so are the files with failed tests, and the counts of all the others. A run that does not
// end by itself when its last test has, because a test left something running, is ended as a failure, after option `endMs`.
const { writeFileSync } = require('node:fs');
const process = require('node:process');
const { format } = require('node:util');
const { reporters, Runner } = require('mocha');

const END_MS = 20_000;

module.exports = class extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const ends = { passed: [], skipped: [] };
    runner.on(Runner.constants.EVENT_TEST_PASS, ({ file }) => ends.passed.push(file));
    runner.on(Runner.constants.EVENT_TEST_PENDING, ({ file }) => ends.skipped.push(file));
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats;
      const failed = this.failures.map((test) => test.titlePath().join(' › '));
      const files = [...new Set(this.failures.map(({ file }) => file))];
      const elsewhere = (those) => those.filter((file) => !files.includes(file)).length;
      const others = { passed: elsewhere(ends.passed), skipped: elsewhere(ends.skipped) };
      const result = { passes, failures, pending, failed, files, others, report: reportOf(this.failures) };
      const write = () => writeFileSync(options.reporterOption.output, JSON.stringify(result));
      write();
      setTimeout(
        () => {
          result.left = process.getActiveResourcesInfo().join(', ');
          write();
          process.exit(1);
        },
        Number(options.reporterOption.endMs ?? END_MS),
      ).unref();
    });
  }

  epilogue() {}
};

/** What mocha says of failures. */
function reportOf(failures) {
  const lines = [];
  const { Base } = reporters;
  const shown = Base.consoleLog;
  Base.consoleLog = (...args) => lines.push(format(...args));
  try {
    Base.list(failures);
  } finally {
    Base.consoleLog = shown;
  }
  return lines.join('\n');
}
