// Lets a child process of a test run TypeScript sources directly: `node --import <register-typescript.mjs> file.ts`.
// The compiled code is cached under `.cache`, by the content of the source.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const jsc = {
  target: 'es2022',
  parser: { syntax: 'typescript', decorators: true },
  transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
  keepClassNames: true,
};
const options = { swcrc: false, jsc, module: { type: 'es6' }, sourceMaps: 'inline' };
const cache = fileURLToPath(new URL('../.cache/typescript/', import.meta.url));

export async function resolve(specifier, context, next) {
  if (/^(\.|file:)/.test(specifier) && specifier.endsWith('.js') && context.parentURL?.endsWith('.ts')) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
    if (existsSync(source)) return { url: source.href, shortCircuit: true };
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts') || !url.startsWith('file:')) return next(url, context);
  return { format: 'module', source: await compiled(fileURLToPath(url)), shortCircuit: true };
}

async function compiled(file) {
  const text = readFileSync(file, 'utf8');
  const key = createHash('sha256').update(JSON.stringify(options)).update(file).update('\0').update(text).digest('hex');
  const cached = join(cache, `${key}.js`);
  if (existsSync(cached)) return readFileSync(cached, 'utf8');
  const { transform } = await import('@swc/core');
  const { code } = await transform(text, { ...options, filename: file });
  mkdirSync(cache, { recursive: true });
  const draft = `${cached}.${process.pid}`;
  writeFileSync(draft, code); // written under another name and renamed, so that no process reads a half file
  renameSync(draft, cached);
  return code;
}
