import express from 'express';
import type { DoorRequest } from '../http/http.types.js';
import { allowedMethods } from './express-routes.js';

it('the router of Express has the methods of the routes at a path', () => {
  const app = express();
  app.use(() => undefined);
  app.get('/agents/:name', () => undefined);
  app.delete('/agents/:name', () => undefined);
  app.post('/agents', () => undefined);
  const at = (path: string) => allowedMethods({ app, path } as unknown as DoorRequest);
  expect([at('/agents/echo'), at('/agents'), at('/nothing')]).toEqual([['GET', 'DELETE'], ['POST'], []]);
});
