import fc from 'fast-check';
import {
  canonicalName,
  disambiguate,
  hashedAlias,
  portableName,
  safeAlias,
  slugOf,
  upstreamName,
} from './tool-names.js';

const alias = (slug: string, skillId: string) => disambiguate([{ slug, skillId }])[0]!.alias;

describe('tool names', () => {
  it.each([
    ['Linear (prod)', 'linear_prod'],
    ['Vercel Ops', 'vercel_ops'],
    ['code-reviewer', 'code_reviewer'],
    ['  A__b..c ', 'a_b_c'],
    ['Café Zürich', 'cafe_zurich'],
    ['ﬁne № 1', 'fine_no_1'],
    ['_x_', 'x'],
  ])('RE-06 the slug of %s is %s', (name, slug) => expect(slugOf(name)).toBe(slug));

  it('RE-06 a slug is never empty or too long, and has no dot or double underscore', () => {
    expect(slugOf('東京')).toMatch(/^agent_[0-9a-f]{8}$/);
    expect(slugOf('東京')).not.toBe(slugOf('大阪'));
    expect(slugOf(`${'a'.repeat(60)}b`)).not.toBe(slugOf(`${'a'.repeat(60)}c`));
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        const slug = slugOf(name);
        expect(slug).toMatch(/^[a-z0-9]+(_[a-z0-9]+)*$/);
        expect(slug.length).toBeLessThanOrEqual(48);
        expect(slugOf(slug)).toBe(slug);
      }),
    );
  });

  it('RE-05 RE-07 builds the name and alias of a skill', () => {
    expect(canonicalName('linear_prod', 'create-issue')).toBe('linear_prod.create-issue');
    expect(canonicalName('a', 'v1.Run_2')).toBe('a.v1.Run_2');
    expect(safeAlias('linear_prod', 'create-issue')).toBe('a2a_linear_prod_create_issue');
  });

  it('C17 names with foreign characters and long ids end in a hash of the full name', () => {
    expect(canonicalName('a', 'run now!')).toMatch(/^a\.run_now_[0-9a-f]{8}$/);
    expect(canonicalName('a', 'run/now')).not.toBe(canonicalName('a', 'run now'));
    expect(canonicalName('a', 'run/now')).not.toBe(canonicalName('a', 'run_now'));
    fc.assert(
      fc.property(fc.string(), fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }), (name, skillId) => {
        const slug = slugOf(name);
        expect(canonicalName(slug, skillId)).toMatch(/^[A-Za-z0-9_.-]{1,128}$/);
        expect(safeAlias(slug, skillId)).toMatch(/^a2a_[a-z0-9_]{1,60}$/);
        expect(safeAlias(slug, skillId)).not.toContain('__');
        expect(portableName(canonicalName(slug, skillId))).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      }),
    );
  });

  it('RE-10 the first skill that needs an alias gets it, later ones get a hashed alias', () => {
    const named = disambiguate([
      { slug: 'a', skillId: 'b_c' },
      { slug: 'a_b', skillId: 'c' },
      { slug: 'x', skillId: 'run-it' },
      { slug: 'x', skillId: 'run.it' },
      { slug: 'x', skillId: 'run_it' },
    ]);
    expect(named.map((skill) => skill.alias)).toEqual([
      'a2a_a_b_c',
      hashedAlias('a_b', 'c'),
      hashedAlias('x', 'run-it'),
      hashedAlias('x', 'run.it'),
      'a2a_x_run_it',
    ]);
  });

  it('RE-10 a skill that an older agent adds later takes no alias from another skill', () => {
    const named = disambiguate([
      { slug: 'vercel', skillId: 'ops_deploy', since: 2 },
      { slug: 'vercel_ops', skillId: 'deploy', since: 1 },
    ]);
    expect(named.map((skill) => skill.alias)).toEqual([hashedAlias('vercel', 'ops_deploy'), 'a2a_vercel_ops_deploy']);
  });

  it('RE-10 aliases are unique, keep the order, and do not change for agents that come later', () => {
    const slug = fc.constantFrom('a', 'a_b', 'a_b_c', 'b');
    const skill = fc.record({ slug, skillId: fc.constantFrom('c', 'b_c', 'b-c', 'B.C', 'b_c_c', 'c_c', '…', '東') });
    fc.assert(
      fc.property(fc.uniqueArray(skill, { selector: (item) => `${item.slug}.${item.skillId}` }), (skills) => {
        const slugs = [...new Set(skills.map((item) => item.slug))];
        const list = slugs.flatMap((each) => skills.filter((item) => item.slug === each));
        const named = disambiguate(list);
        expect(named.map(({ slug, skillId }) => ({ slug, skillId }))).toEqual(list);
        expect(new Set(named.map((item) => item.alias)).size).toBe(list.length);
        const earlier = list.filter((item) => item.slug !== slugs.at(-1));
        expect(disambiguate(earlier)).toEqual(named.slice(0, earlier.length));
        expect(disambiguate([...list].filter((item) => item.slug === slugs[0]).reverse()).reverse()).toEqual(
          named.filter((item) => item.slug === slugs[0]),
        );
      }),
    );
    expect(alias('東京', '東')).toMatch(/^a2a_/);
  });

  it('names upstream tools', () => {
    expect(upstreamName('github', 'get-issue')).toBe('github__get-issue');
    expect(upstreamName('github', 'x/y')).toMatch(/^github__x_y_[0-9a-f]{8}$/);
    expect(upstreamName('github', 'x'.repeat(300))).toHaveLength(128);
    expect(portableName('github__get-issue')).toBe('github__get-issue');
    expect(portableName('github__admin.list')).toMatch(/^github__admin_list_[0-9a-f]{8}$/);
  });
});
