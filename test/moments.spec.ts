import type { z } from 'zod';
import { AuditQuery, DecisionQuery } from '../src/audit/audit.types.js';
import { CreateKey, RevokeToken } from '../src/policy/org.types.js';
import { DispatchQuery } from '../src/registry/dispatch.types.js';
import { DeliveryQuery, ReplayDeliveries, SummaryQuery } from '../src/webhooks/admin/webhook.types.js';

const ranges: readonly [string, z.ZodType][] = [
  ['AuditQuery', AuditQuery],
  ['DecisionQuery', DecisionQuery],
  ['DispatchQuery', DispatchQuery],
  ['DeliveryQuery', DeliveryQuery],
  ['ReplayDeliveries', ReplayDeliveries],
  ['SummaryQuery', SummaryQuery],
];
type Taking = [name: string, schema: z.ZodType, field: string, others: object];
const takes: readonly Taking[] = [
  ...ranges.flatMap(([name, schema]): Taking[] => [
    [name, schema, 'from', {}],
    [name, schema, 'to', { from: '2026-01-01T00:00:00Z' }],
  ]),
  ['CreateKey', CreateKey, 'expiresAt', { name: 'ci' }],
  ['RevokeToken', RevokeToken, 'expiresAt', { jti: 'j' }],
];

describe.each(takes)('%s', (_, schema, field, others) => {
  const read = (value: string) => schema.safeParse({ ...others, [field]: value });

  it.each([
    '0000-01-01T00:00:00Z',
    '1969-12-31T23:59:59Z',
    '1970-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-15:59',
    `2026-01-01T00:00:00.${'1'.repeat(10)}Z`,
    `2026-01-01T00:00:00.${'1'.repeat(200)}Z`,
    '2026-01-01T00:00:00',
    '2026-02-30T00:00:00Z',
    'yesterday',
    '',
  ])(`refuses ${field} %s`, (value) => {
    const { issues } = read(value).error!;
    expect(issues.map(({ path }) => path)).toEqual([[field]]);
  });

  it.each([
    ['2026-01-01T00:00:00+23:00', '2025-12-31T01:00:00.000Z'],
    ['2026-01-01T00:00:00-23:59', '2026-01-01T23:59:00.000Z'],
    ['2026-01-01T00:00:00.123456789Z', '2026-01-01T00:00:00.123Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])(`reads ${field} %s as the same time in UTC`, (value, moment) => {
    expect(read(value).data).toMatchObject({ [field]: moment });
  });
});
