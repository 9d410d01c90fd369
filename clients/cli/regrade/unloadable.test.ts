import { expect } from 'chai';
import { PolarError } from '../../../services/common/errors.ts';
import { Unloadable } from './unloadable.ts';

const none = new PolarError('EVALUATOR_PLUGIN_INVALID', 'evaluator a.ts: it is not there');
const asked = (...urls: string[]): Unloadable => {
  const nodes = new Unloadable();
  for (const url of urls) nodes.check(url);
  return nodes;
};

describe('nodes that cannot load an evaluator', () => {
  it('are not asked again', () => {
    const nodes = asked('a', 'b');
    nodes.failed('a', none);
    expect(() => nodes.check('a')).to.throw(none.message);
    expect(() => nodes.check('b')).to.not.throw();
  });

  it('are all of them, or it is theirs alone', () => {
    const nodes = asked('a', 'b');
    nodes.failed('a', none);
    nodes.failed('b', new PolarError('NOTHING_TO_GRADE', 'none'));
    expect(() => nodes.throwIfAll()).to.not.throw();
    nodes.failed('b', none);
    expect(() => nodes.throwIfAll()).to.throw(none.message);
    expect(() => asked().throwIfAll()).to.not.throw();
  });
});
