import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { arrayMember, member, objectMember } from '../members.js';

export interface Cost {
  readonly amount: number;
  readonly currency?: string;
}

const names = ['costPerTask', 'x-cost-per-task'];

/**
 * Reads the price of one task from a card (RE-61). Looks for `costPerTask` (or `cost_per_task`) and then
 * `x-cost-per-task` in `metadata`, in the card itself and in `capabilities.extensions[].params`, in this order. The
 * value is a number or `{ amount, currency? }`; negative and other values are ignored.
 */
export function costPerTask(card: JsonObject): Cost | undefined {
  const extensions = arrayMember(objectMember(card, 'capabilities'), 'extensions').filter(isJsonObject);
  const places = [
    objectMember(card, 'metadata'),
    card,
    ...extensions.map((extension) => objectMember(extension, 'params')),
  ];
  for (const place of places) {
    for (const name of names) {
      const cost = costOf(member(place, name));
      if (cost) return cost;
    }
  }
  return undefined;
}

function costOf(value: Json | undefined): Cost | undefined {
  if (typeof value === 'number') return Number.isFinite(value) && value >= 0 ? { amount: value } : undefined;
  if (!isJsonObject(value)) return undefined;
  const cost = typeof value.amount === 'number' ? costOf(value.amount) : undefined;
  return cost && { ...cost, ...(typeof value.currency === 'string' && { currency: value.currency }) };
}
