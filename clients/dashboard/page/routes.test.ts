import { expect } from 'chai';
import { compareHash, routeOf, sessionHash, taskHash, tasksHash } from './routes.js';

const NONE = { name: '', harness: '', state: '', outcome: '' };

describe('dashboard routes', () => {
  it('come back from the addresses that views link to', () => {
    expect(routeOf('')).to.deep.equal({ view: 'mesh' });
    expect(routeOf(taskHash('a.b-1', '50'))).to.deep.equal({ view: 'task', id: 'a.b-1', page: '50' });
    expect(routeOf(sessionHash('s1-0'))).to.deep.equal({ view: 'session', id: 's1-0' });
    expect(routeOf(compareHash('a', 'b'))).to.deep.equal({ view: 'compare', ids: ['a', 'b'] });
    const filter = { ...NONE, name: 'a&b=/?#', outcome: 'timeout' };
    expect(routeOf(tasksHash(filter, 'live-7'))).to.deep.equal({ view: 'tasks', filter, page: 'live-7' });
    expect(routeOf(tasksHash(NONE))).to.deep.equal({ view: 'tasks', filter: NONE, page: '' });
  });

  it('are the mesh where an address says nothing', () => {
    for (const hash of ['#/nowhere', '#/task/', '#/compare/a', '#/session/%', '#', '#//']) {
      expect(routeOf(hash), hash).to.deep.equal({ view: 'mesh' });
    }
  });
});
