import { RialtoError } from '../../kernel/errors.js';
import { isLineBroken, statementError } from './outage.js';

const fault = (message: string, code?: string): Error => Object.assign(new Error(message), code && { code });

describe('the error of a statement', () => {
  it.each([
    fault('the database system is starting up', '57P03'),
    fault('terminating connection due to administrator command', '57P01'),
    fault('sorry, too many clients already', '53300'),
    fault('canceling statement due to statement timeout', '57014'),
    fault('deadlock detected', '40P01'),
    fault('canceling statement due to lock timeout', '55P03'),
    fault('cannot execute INSERT in a read-only transaction', '25006'),
    fault('could not extend file "base/1": No space left on device', '53100'),
    fault('connect ECONNREFUSED 127.0.0.1:5432', 'ECONNREFUSED'),
    fault('Connection terminated unexpectedly'),
    Object.assign(new Error('wrapped by TypeORM'), { driverError: fault('read ECONNRESET', 'ECONNRESET') }),
  ])('is unavailable when the server cannot be reached or is busy: %s', (error) => {
    expect(statementError(error)).toMatchObject({ code: 'unavailable', cause: error });
  });

  it.each([
    fault('duplicate key value violates unique constraint', '23505'),
    fault('syntax error', '42601'),
    fault('invalid input syntax for type uuid', '22P02'),
    new RialtoError('not_found'),
    undefined,
  ])('is otherwise unchanged: %s', (error) => {
    expect(statementError(error)).toBe(error);
  });
});

describe('a broken connection', () => {
  it.each([
    fault('Connection terminated unexpectedly'),
    fault('read ECONNRESET', 'ECONNRESET'),
    fault('terminating connection due to administrator command', '57P01'),
    statementError(fault('write EPIPE', 'EPIPE')),
  ])('leaves the outcome of the statement unknown, and another connection may work: %s', (error) => {
    expect(isLineBroken(error)).toBe(true);
  });

  it.each([
    fault('Query read timeout'),
    fault('timeout exceeded when trying to connect'),
    fault('canceling statement due to statement timeout', '57014'),
    statementError(fault('could not extend file', '53100')),
    fault('duplicate key value violates unique constraint', '23505'),
    undefined,
  ])('does not include a timeout or a refusal: %s', (error) => {
    expect(isLineBroken(error)).toBe(false);
  });
});
