import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject } from '../../kernel/json.js';
import { changesBetween, nearestOf } from '../../platform/config/nearest-name.js';
import type { Declared } from './declared-published.js';

const profileName = 'profile.yaml';
/** Changes of letters up to which a name counts as a misspelling of another. */
const maxChanges = 2;
/**
 * Members of a profile with the same meaning as in the API. Other members are private to the agent and are not
 * published (RY-09).
 */
const known = [
  'name',
  'handle',
  'description',
  'executor',
  'skills',
  'publishToCard',
  'streaming',
  'pushNotifications',
  'extendedCard',
  'defaultInputModes',
  'defaultOutputModes',
  'version',
  'provider',
  'documentationUrl',
  'iconUrl',
  'extensions',
  'protocolVersions',
  'history',
  'a2a_accept_cleartext',
  'a2a_enabled',
];

/**
 * Returns the agents of a folder, each with a text that changes when its profile does. Sub-directories that start
 * with a dot or an underscore are ignored. A missing folder has no agents.
 */
export async function agentsIn(folder: string): Promise<Map<string, string>> {
  const names = await readdir(folder).catch(orNothing<string[]>([]));
  const marks = await Promise.all(names.sort().map(async (name) => [name, await markOf(join(folder, name))] as const));
  return new Map(marks.flatMap(([name, mark]) => (/^[._]/.test(name) || mark === undefined ? [] : [[name, mark]])));
}

/**
 * Reads the declaration of a directory. Without a profile it declares an agent with the name of the directory and
 * defaults.
 */
export async function readAgent(folder: string, directory: string): Promise<Declared> {
  const text = await readFile(join(folder, directory, profileName), 'utf8').catch(orNothing(''));
  const profile = parseMapping(text);
  if (profile instanceof RialtoError) return { name: directory, members: profile };
  const given = Object.fromEntries(known.flatMap((member) => (member in profile ? [[member, profile[member]]] : [])));
  const role = typeof profile.role === 'string' && profile.role.trim() !== '' ? { description: profile.role } : {};
  // The default is text only, unless the profile says more (RY-08, RY-43).
  const usual = { defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] };
  const name = typeof given.name === 'string' ? given.name : directory;
  return { name, members: { ...usual, ...role, ...given }, doubts: misspelled(Object.keys(profile)) };
}

/** Returns a warning for each ignored member with a name that is almost one of those that have a meaning. */
function misspelled(members: readonly string[]): string[] {
  const ignored = members.filter((member) => member !== 'role' && !known.includes(member));
  return ignored.flatMap((member) => {
    const meant = nearestOf([...known, 'role'], member);
    return changesBetween(meant, member) > maxChanges
      ? []
      : [`${profileName}: the member "${member}" is ignored; did you mean "${meant}"?`];
  });
}

async function markOf(directory: string): Promise<string | undefined> {
  const itself = await stat(directory).catch(orNothing(undefined));
  if (!itself?.isDirectory()) return undefined;
  const profile = await stat(join(directory, profileName)).catch(orNothing(undefined));
  return profile ? `${profile.ino}:${profile.size}:${profile.mtimeMs}` : '';
}

function parseMapping(text: string): Readonly<Record<string, unknown>> | RialtoError {
  try {
    const value: unknown = parse(text) ?? {};
    return isJsonObject(value) ? value : bad('is not a mapping');
  } catch {
    return bad('is not valid YAML');
  }
}

function bad(what: string): RialtoError {
  return new RialtoError('invalid_params', { message: `${profileName} ${what}` });
}

/** Returns a handler that gives `nothing` for a missing file or directory and rethrows any other error. */
function orNothing<Value>(nothing: Value): (error: NodeJS.ErrnoException) => Value {
  return (error) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return nothing;
    throw error;
  };
}
