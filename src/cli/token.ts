import { SignJWT } from 'jose';
import { roles, type Role } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { newId } from '../kernel/ids.js';
import type { Settings } from '../platform/config/settings.js';
import type { OperatorService } from '../policy/operator.service.js';
import { CreateOrg, SaveMember } from '../policy/org.types.js';
import { CommandError, note, print, type Env } from './io.js';
import { asOperator } from './operator.js';

export interface TokenOptions {
  readonly org: string;
  readonly sub: string;
  readonly role?: string;
  readonly ttl: string;
  readonly create?: boolean;
}

const maxSeconds = 3_600;
const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3_600 };

/** Prints only the token of a member, so that `$(rialto token …)` is a token (D8: HS256, at most one hour). */
export async function token(env: Env, options: TokenOptions): Promise<void> {
  const seconds = secondsOf(options.ttl);
  const role = roleOf(options.role);
  const { org, sub } = namesOf(options);
  const made = await asOperator(env, async (operator, settings) => {
    const create = options.create === true || !settings.production;
    try {
      const before = await operator.tokens.admitMember({ org, sub, role, create });
      if (before) note(`${sub} was ${before} in the org ${org} and is ${role} from now on, for every token it has`);
    } catch (error) {
      throw create ? error : new CommandError(`${(error as Error).message}; --create creates or changes it`);
    }
    return sign({ org, sub, seconds }, await secretOf(operator, settings, org, create), settings);
  });
  print(made);
}

/** Parses `15m`, `900s`, `1h` or plain seconds. */
export function secondsOf(text: string): number {
  const [, digits, unit = 's'] = /^(\d{1,6})([smh])?$/.exec(text) ?? [];
  const seconds = Number(digits) * unitSeconds[unit]!;
  if (!(seconds >= 1 && seconds <= maxSeconds))
    throw new CommandError(`--ttl ${text}: give 1s to 1h, for example 15m; no token lives longer than an hour`);
  return seconds;
}

function roleOf(text: string | undefined): Role | undefined {
  const role = roles.find((known) => known === text);
  if (text !== undefined && !role) throw new CommandError(`--role ${text}: give one of ${roles.join(', ')}`);
  return role;
}

function namesOf({ org, sub }: TokenOptions): { org: string; sub: string } {
  const slug = CreateOrg.shape.slug.safeParse(org);
  if (!slug.success) throw new CommandError(`--org ${org}: ${slug.error.issues[0]?.message}`);
  const name = SaveMember.shape.sub.safeParse(sub);
  if (!name.success) throw new CommandError(`--sub ${sub}: ${name.error.issues[0]?.message}`);
  return { org: slug.data, sub: name.data };
}

async function secretOf(
  operator: OperatorService,
  { A2A_SECRET, RIALTO_A2A_SECRET_ADMINS: admins }: Settings,
  org: string,
  create: boolean,
): Promise<Uint8Array> {
  if (A2A_SECRET && admins) return Buffer.from(A2A_SECRET);
  const orgSecret = await operator.tokens.signingSecret(org);
  if (orgSecret) return orgSecret;
  if (!create && A2A_SECRET) {
    note(`under A2A_SECRET an admin acts as a member; \`rialto keys rotate --org ${org}\` creates a secret of the org`);
    return Buffer.from(A2A_SECRET);
  }
  if (!create) throw new CommandError(`set A2A_SECRET, or create a secret with \`rialto keys rotate --org ${org}\``);
  return Buffer.from(await operator.tokens.rotateTokenSecret(org, 0));
}

function sign(
  { org, sub, seconds }: { org: string; sub: string; seconds: number },
  secret: Uint8Array,
  { RIALTO_JWT_ISSUERS: [issuer], RIALTO_JWT_AUDIENCE: [audience] }: Settings,
): Promise<string> {
  if (!issuer || !audience)
    throw new CommandError('RIALTO_JWT_ISSUERS and RIALTO_JWT_AUDIENCE must each name at least one');
  const now = Math.floor(systemClock.now() / 1_000);
  return new SignJWT({ org_domain: org })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(sub)
    .setIssuedAt(now)
    .setExpirationTime(now + seconds)
    .setJti(newId())
    .sign(secret);
}
