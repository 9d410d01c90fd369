// mocha's spec reporter, and the counts as JSON in the file of option `output`. A run that does not end by itself when
// its last test has, because a test left something running, is ended as a failure.
const { writeFileSync } = require('node:fs');
const process = require('node:process');
const { reporters, Runner } = require('mocha');

const END_MS = 20_000;

module.exports = class extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats;
      writeFileSync(options.reporterOption.output, JSON.stringify({ passes, failures, pending }));
      setTimeout(() => {
        const left = process.getActiveResourcesInfo().join(', ');
        process.stdout.write(`mocha does not end ${END_MS / 1000} s after its last test: ${left}\n`);
        // mocha's own handler, which sets the code by its failures, comes before this one.
        process.on('exit', () => {
          process.exitCode = 1;
        });
        process.exit(1);
      }, END_MS).unref();
    });
  }
};
