import type { Application } from 'express';
import type { DoorRequest } from '../http/http.types.js';

/**
 * The parts of a layer of the Express 5 router, which its types do not declare.
 *
 * Missing public API: the methods of the routes at a path, which a server needs for 405 and `Allow`.
 * Canary test: `express-routes.spec.ts`.
 */
interface Layer {
  readonly route?: { readonly methods: Readonly<Record<string, boolean>> };
  match(path: string): boolean;
}

/** Returns the methods that the routes at the path of a request take, in capital letters; none for an unknown path. */
export function allowedMethods(request: DoorRequest): string[] {
  const { app, path } = request as DoorRequest & { readonly app: Application; readonly path: string };
  const { stack } = app.router as unknown as { readonly stack: readonly Layer[] };
  const methods = stack.flatMap((layer) => (layer.route && layer.match(path) ? Object.keys(layer.route.methods) : []));
  return [...new Set(methods.map((method) => method.toUpperCase()))];
}
