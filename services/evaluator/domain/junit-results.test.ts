import { expect } from 'chai';
import { readJunit } from './junit-results.ts';

const read = (...parts: string[]): string[] =>
  [...readJunit(parts.join('\n'))].map(([name, status]) => `${status} ${name}`);
const suite = (inside: string): string => `<testsuite name="s">${inside}</testsuite>`;

describe('JUnit XML', () => {
  it('may be of several documents, with other text between them', () => {
    const one = `<?xml version="1.0"?>\n${suite('<testcase classname="a.B" name="c"/>')}`;
    const other = `<testsuites>${suite('<testcase name="d"></testcase>')}</testsuites>`;
    expect(read('log <b> & more', one, 'ok', other, '<testcase name="e"/>')).to.deep.equal([
      'PASSED a.B.c',
      'PASSED d',
    ]);
  });

  it('has no results in what tests have printed', () => {
    const faked = '<testcase name="faked"/>';
    const printed = `<![CDATA[</testcase>${faked}]]><!-- ${faked} --><?x ${faked}?>`;
    const test = `<testcase name="a" x=">" y='"/>'><system-out>${printed}</system-out><error/></testcase>`;
    expect(read(suite(test))).to.deep.equal(['ERROR a', 'PASSED a']);
  });

  it('has the characters that names stand for, and no entities of its own', () => {
    const name = '&lt;a&gt; &amp;amp; &quot;&apos; &#65;&#x42; &b; &#x110000;';
    expect(read(suite(`<testcase name="${name}"/>`))).to.deep.equal([
      'PASSED <a> &amp; "\' AB &b; &#x110000;',
    ]);
    const bomb = '<!DOCTYPE t [<!ENTITY a "&b;&b;"><!ENTITY b "<testcase name=\'faked\'/>">]>';
    expect(read(bomb, suite('&a;<testcase name="&a;"/>'))).to.deep.equal(['PASSED &a;']);
    expect(read(`<testsuite><!DOCTYPE t><testcase name="a"/></testsuite>`)).to.deep.equal([
      'ERROR testsuite',
    ]);
  });

  it('is an ERROR where it ends too early, or is none', () => {
    for (const rest of [
      '',
      '<testcase',
      '</testsuites>',
      '<a b></a>',
      '<![CDATA[',
      '<!--',
      '</testsuite',
      '<a b="',
    ]) {
      expect(read(`<testsuite><testcase name="a"/>${rest}`), rest).to.deep.equal([
        'PASSED a',
        'ERROR testsuite',
      ]);
    }
  });

  it('has no result for a test that does not end', () => {
    expect(read('<testsuite><testcase name="a"><system-out>')).to.deep.equal(['ERROR testsuite']);
  });

  it('tells what was not run, and both of two', () => {
    const inside = '<testcase name="a" status="notrun"/><testcase name="b"><skipped/><failure/></testcase>';
    expect(read(suite(inside))).to.deep.equal(['SKIPPED a', 'SKIPPED b', 'FAILED b', 'PASSED b']);
  });
});
