// `node scripts/bundle.mjs`: joins the built gateway, the `rialto` command and their packages into the few files of
// `dist/bundle`, because a start that reads 3,600 files takes twice the processor time. What is imported late stays in
// files of its own.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

/**
 * Optional parts of Nest that Rialto does not install, packages that find their own files by their place, and CommonJS
 * packages that are imported late: a bundle gives such an import no names.
 */
const external = [
  'class-transformer',
  'class-validator',
  '@fastify/static',
  '@nestjs/microservices',
  '@nestjs/websockets',
  '@cedar-policy/*',
  '@bull-board/*',
  '@grpc/grpc-js',
  '@opentelemetry/resources',
];

/** CommonJS packages use these names. */
const commonJs = `import { createRequire as requireOf } from 'node:module';
const require = requireOf(import.meta.url), { filename: __filename, dirname: __dirname } = import.meta;`;

/** This file would load a second TypeORM, to find classes that TypeORM 1 no longer has. */
const oneTypeorm = {
  name: 'one typeorm',
  setup: (bundle) =>
    bundle.onLoad({ filter: /@nestjs.typeorm.dist.common.typeorm-compat\.js$/ }, () => ({
      contents: 'export const Connection = undefined, AbstractRepository = undefined;',
    })),
};

const outdir = 'dist/bundle';
rmSync(outdir, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: ['dist/src/run-gateway.js', 'dist/src/run-cli.js'],
  outdir,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  keepNames: true, // Nest and TypeORM use the names of classes
  external,
  plugins: [oneTypeorm],
  banner: { js: commonJs },
  logLevel: 'warning',
  metafile: true,
});
const nameless = Object.values(metafile.outputs)
  .filter(({ entryPoint, exports }) => entryPoint?.includes('node_modules/') && String(exports) === 'default')
  .map(({ entryPoint }) => entryPoint);
if (nameless.length > 0) throw new Error(`imported late, so list them as external: ${nameless.join(', ')}`);

/**
 * The function that keeps names defines a property of every closure, on each call that makes one. Only a class that got
 * another name needs it.
 */
const slow = '__name = (target, value) => __defProp(';
const fast = '__name = (target, value) => !target.name || target.name === value ? target : __defProp(';
let replaced = 0;
for (const name of readdirSync(outdir)) {
  const file = join(outdir, name);
  const text = readFileSync(file, 'utf8');
  if (text.includes(slow)) replaced++;
  writeFileSync(file, inAscii(text.replace(slow, fast)));
}
if (replaced !== 1) throw new Error(`the function that keeps names is in ${replaced} files, expected in one`);

/**
 * Only comments and regular expressions still have other characters than ASCII. With one of them, Node keeps the whole
 * file as text of two bytes a character: 20 MB.
 */
function inAscii(text) {
  return text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
