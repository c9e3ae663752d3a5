create or replace function {history}_payment(
    w int, d int, cw int, cd int, number int, name text, amount numeric) returns int
language plpgsql as $body$
declare
    at_warehouse text;
    at_district text;
    c int := number;
    credit text;
begin
    update {warehouse} set w_ytd = w_ytd + amount where w_id = w returning w_name into strict at_warehouse;
    update {district} set d_ytd = d_ytd + amount where d_w_id = w and d_id = d returning d_name into strict at_district;
    if number = 0 then
        select c_id into strict c from {customer} where c_w_id = cw and c_d_id = cd and c_last = name
            order by c_first limit 1
            offset (select (count(*) + 1) / 2 - 1 from {customer} where c_w_id = cw and c_d_id = cd and c_last = name);
    end if;
    update {customer} set
        c_balance = c_balance - amount,
        c_ytd_payment = c_ytd_payment + amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = case c_credit when 'BC'
            then left(concat_ws(' ', c, cd, cw, d, w, round(amount, 2), c_data), 500) else c_data end
        where c_w_id = cw and c_d_id = cd and c_id = c returning c_credit into strict credit;
    insert into {history} (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        values (cd, cw, c, d, w, localtimestamp, amount, at_warehouse || '    ' || at_district);
    return c;
end $body$
