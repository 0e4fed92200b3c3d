/** Plain SQL for a task, its event and its end. */
export const tables = `
  create table if not exists bare (id bigint primary key, state text not null default 'new', body json not null);
  create table if not exists bare_events (id bigint, seq integer, body json not null, primary key (id, seq))`;

export const statements = {
  insert: { name: 'insert', text: 'insert into bare (id, body) values ($1, $2)' },
  open: {
    name: 'open',
    text: `with t as (insert into bare (id, body) values ($1, $2) returning id)
      insert into bare_events select id, 1, $2 from t`,
  },
  end: {
    name: 'end',
    text: `with t as (update bare set state = 'done' where id = $1 and state = 'new' returning id)
      insert into bare_events select id, 2, $2 from t`,
  },
};
