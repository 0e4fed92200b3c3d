import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { requirements } from '../requirements.js';

const root = join(__dirname, '..', '..');
const invariants = readFileSync(join(root, 'docs', 'invariants.md'), 'utf8');
const threats = readFileSync(join(root, 'docs', 'threat-model.md'), 'utf8');

const comment = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*/gm;
/** A requirement, an abuse case, an invariant, or another short id in brackets. */
const citation =
  /\b((?:RE|AN|AE|RY|RI)-\d+)\b|\babuse (?:case )?(\d+)|\bI(\d{1,2})\b|\((?:[^()]*[ ,])?([A-HJ-Z]\d{1,2})[),]/g;

/** Returns the citations in the comments of a source that have no target in this repository. */
function withoutTarget(source: string): string[] {
  const comments = source.match(comment) ?? [];
  return [...comments.join('\n').matchAll(citation)].flatMap(([text, requirement, abuse, invariant]) => {
    if (requirement !== undefined) return requirements.has(requirement) ? [] : [text];
    if (abuse !== undefined) return threats.includes(`\n| ${abuse} |`) ? [] : [text];
    if (invariant !== undefined) return invariants.includes(`<a id="i${invariant}">`) ? [] : [text];
    return [text];
  });
}

const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).map((name) => join('src', name));

it('ARCHITECTURE.md names files and folders that exist', () => {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
  const named = [...text.matchAll(/`([\w-]+(?:\/[\w.-]+)*\/?)`/g)]
    .map(([, name]) => name!)
    .filter((name) => /[/.]/.test(name));
  const isThere = (name: string) =>
    existsSync(join(root, name)) || sources.some((file) => `/${file}/`.includes(`/${name.replace(/\/$/, '')}/`));
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((name) => !isThere(name) && !existsSync(join(root, 'helm', 'rialto', name)))).toEqual([]);
});

/** A requirement that does not exist; in one piece, this file would cite it. */
const unknown = ['RE', '9999'].join('-');

describe('the citations in comments', () => {
  it('have a target in this repository', () => {
    const files = sources.filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'));
    const found = files.flatMap((file) =>
      withoutTarget(readFileSync(join(root, file), 'utf8')).map((text) => `${file}: ${text}`),
    );
    expect(files.length).toBeGreaterThan(300);
    expect(found).toEqual([]);
  });

  it.each([
    [`/** Waits (${unknown}). */`, [unknown]],
    ['// Refuses it (abuse 999).', ['abuse 999']],
    ['/* Breaks I11. */', ['I11']],
    ['/** Ends at once (F20). */', ['(F20)']],
    ['/** Ends at once (AN-78, F9). */', ['(AN-78, F9)']],
    ['/** Cites I3, RE-12 and abuse case 4. */', []],
    ["const text = 'F20 (F20)';", []],
  ])('are checked in %s', (source, missing) => {
    expect(withoutTarget(source)).toEqual(missing);
  });
});
