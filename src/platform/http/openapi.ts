import type { NestExpressApplication } from '@nestjs/platform-express';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import type { RequestHandler } from 'express';
import { VERSION } from '../telemetry/version.js';
import { problemStatus } from './problem.js';
import { contentPolicy } from './content-policy.js';
import { FrontDoor } from './server/front-door.js';
import type { HotRoute } from './http.types.js';

/** Authentication for operators' pages: Nest's guards do not cover handlers that are mounted beside its routes. */
export interface Gate {
  /** Allows everyone in development, only operators in production. */
  readonly docs: RequestHandler;
  /** Always requires an admin. */
  readonly admin: RequestHandler;
}

/**
 * Serves OpenAPI at `/docs` and `/docs-json`, made from the schemas that validate. It is built at the first request.
 */
export function mountOpenApi(app: NestExpressApplication, gate: Gate): void {
  app.use(['/docs', '/docs-json', '/docs-yaml'], gate.docs, contentPolicy);
  let document: OpenAPIObject | undefined;
  SwaggerModule.setup('docs', app, () => (document ??= describe(app)), {
    jsonDocumentUrl: 'docs-json',
    yamlDocumentUrl: 'docs-yaml',
    customSiteTitle: 'Rialto API',
  });
}

function describe(app: NestExpressApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setTitle('Rialto')
    .setDescription(
      'Management API of the agent gateway. ' +
        'Errors are RFC 9457 problem documents with a `code`; lists answer `{ items, nextCursor }`.',
    )
    .setVersion(VERSION.version)
    .addBearerAuth()
    .build();
  const document = SwaggerModule.createDocument(app, config);
  for (const route of app.get(FrontDoor).table) describeHot(document, route);
  return withProblems(document);
}

function describeHot(document: OpenAPIObject, { template, methods, summary }: HotRoute): void {
  const parameters = [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name: name!,
    in: 'path' as const,
    required: true,
    schema: { type: 'string' },
  }));
  const operation = {
    tags: ['protocol doors'],
    summary,
    parameters,
    security: [{ bearer: [] }],
    responses: { 200: { description: 'Defined by the protocol' } },
  };
  document.paths[template] = Object.fromEntries(methods.map((method) => [method.toLowerCase(), operation]));
}

/** Adds the problem responses that every operation may return. */
function withProblems(document: OpenAPIObject): OpenAPIObject {
  const statuses = [400, 401, 403, 404, 413, 415, 429, 503];
  const schema = {
    type: 'object',
    required: ['type', 'title', 'status', 'code', 'requestId'],
    properties: {
      type: { type: 'string' },
      title: { type: 'string' },
      status: { type: 'integer' },
      code: { type: 'string', enum: Object.keys(problemStatus) },
      detail: { type: 'string' },
      hint: { type: 'string' },
      requestId: { type: 'string' },
      violations: {
        type: 'array',
        items: { type: 'object', properties: { field: { type: 'string' }, description: { type: 'string' } } },
      },
    },
  };
  document.components = {
    ...document.components,
    schemas: { ...document.components?.schemas, Problem: schema as never },
  };
  for (const path of Object.values(document.paths)) {
    for (const operation of Object.values(path as Record<string, { responses?: Record<string, unknown> }>)) {
      for (const status of statuses) {
        operation.responses = {
          [status]: {
            description: 'Problem',
            content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
          },
          ...operation.responses,
        };
      }
    }
  }
  return document;
}
