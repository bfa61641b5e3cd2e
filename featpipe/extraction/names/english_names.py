"""English names of one thing, between semicolons: groups as in ``synonyms``, of English alone."""

from __future__ import annotations

#: What parties are called.
PARTIES = """
provider, service provider, supplier, vendor;
provider, service provider, contractor, consultant;
subcontractor;
buyer, purchaser, acquirer, acquiror, bidder;
seller, sellers, vendor, vendors;
target, target company;
employee, name of employee, employee name;
employer, name of employer, employer name;
licensor, supplier;
licensee, distributor;
distributor, reseller;
shipper, exporter, consignor, sender, shipper's name and address, shipper / exporter;
consignee, deliver to, delivered to, consigned to, receiver, consignee's name and address;
notify party;
forwarding agent, delivery agent, delivery agent at destination, issuing carrier's agent;
carrier, issuing carrier, shipping line;
disclosing party, discloser;
receiving party, recipient;
franchisor;
franchisee;
executive, employee;
owner;
trustee;
lender;
guarantor, guarantors;
"""
NAMES = """
lender, bank;
licensor, principal, grantor, manufacturer;
distributor, dealer;
notify party, notify, also notify;
guarantor, guarantee of, personal guarantee of, corporate guarantee of, guaranty of,
    guaranteed by, personal guarantor, corporate guarantor;
seller, supplier, vendor, exporter, from;
rent, monthly rent, base rent, rent amount, rental;
deposit, security deposit, damage deposit, rental deposit;
term, lease term, initial term, contract term, term of agreement, term of lease, agreement term,
    contract period, agreement period, contract duration, duration of agreement, service period,
    period, duration, licence term, license term, period of agreement, contract term;
effective date, effective from, effective as of, start date, commencement date,
    date of commencement;
client, customer, purchaser, buyer;
late payment interest, default interest, interest on late payment, interest on overdue amounts,
    late interest rate, overdue interest, default interest rate, late payment interest rate;
key personnel, key staff, key people, key persons, key individuals, nominated persons,
    named personnel;
document number, document no, document no., invoice number, invoice no, invoice no., invoice #,
    purchase order number, purchase order no, purchase order no., order number, po number;
document number, b/l no, b/l no., b/l number, bill of lading no, bill of lading no.,
    bill of lading number, awb number, awb no, awb no., air waybill number, waybill number,
    waybill no, waybill no., sea waybill no., delivery note no, delivery note no.,
    delivery note number, note no, note no., note number;
port of loading, airport of departure, loading port, loaded at, pol, place of receipt;
port of discharge, airport of destination, discharge port, unloaded at, pod, place of delivery,
    port of destination, destination port;
vessel, vessel / voyage, vessel/voyage, ocean vessel, ex vessel, vessel name, vessel and voyage,
    vessel name and voyage, ship, flight, flight / date, flight number, flight no, flight no.;
container number, container no, container no., container, containers, ex container,
    marks and nos / container, container nos, container nos., unit number;
gross weight, total gross weight, total gross, gross, gross wt, gross wt., gross weight (kg);
net weight, total net weight, total net, net wt, net wt.;
shipped date, shipped on board, date shipped, dispatched, despatched, shipping date,
    date of shipment, shipment date, on board date, laden on board, date of dispatch,
    dispatch date, departure date;
territory, area, licensed territory, sales territory, region;
minimum purchase, minimum annual purchase, minimum annual off-take, minimum quantity,
    minimum purchase commitment, annual minimum, minimum commitment, minimum order,
    minimum purchase requirement, minimum annual volume;
licence fee, license fee, licence fees, license fees, royalty, royalty rate, royalties,
    subscription fee, annual licence fee, annual license fee;
licensed product, licensed products, products, licensed software, software, licensed mark,
    licensed marks, trade mark, trade marks, trademark, trademarks, licensed property, brand;
issue date, invoice date, date of issue, order date, date of order, po date, document date;
order date, date of order, ordered on, order placed on, po date, purchase order date;
payment term, payment terms, terms of payment, terms, payment;
total amount, order value, order total, invoice total, grand total, total value, po total,
    gross total, amount incl. vat, amount including vat, total incl. vat, total including vat;
project, project title, project name;
contract price, fixed price, contract sum, total price, total fee, total contract value;
salary, annual salary, base salary, basic salary, gross salary, yearly salary, base pay,
    rate of pay, starting salary, remuneration, monthly salary, basic pay, pay;
place of work, workplace, work location, normal place of work, work site;
line manager, reports to, reporting to, reporting officer, reporting manager, manager,
    supervisor, report to;
job title, designation, position, position title, title of position, role;
start date, date of joining, employment begins, joining date, first day, commencement date,
    employment start date, date of commencement;
letter date, date of issue, date issued, issued, issue date;
consideration, purchase price, purchase consideration, deal value, transaction value,
    aggregate consideration, total consideration, price;
stake, share acquired, stake acquired, percentage acquired, interest acquired, shareholding;
signing date, signing, date of signing, date signed, signed, signed on, agreement date;
expected closing, closing expected, closing date, closing, completion, expected completion,
    completion date, target closing, anticipated closing;
financial adviser, financial advisor, m&a adviser, corporate finance adviser, m&a advisor;
legal adviser, legal advisor, legal counsel, counsel;
working hours, hours of work, work hours, weekly hours;
probation period, probationary period, probation, trial period;
employer, company;
notice period, non-renewal notice, notice of non-renewal, period of notice,
    termination notice period, termination notice,
    notice of termination, termination on notice, notice of termination for convenience;
purchase order #, purchase order, po number, order number;
incoterm, incoterms, incoterms 2020, delivery terms, terms of delivery, delivery clause,
    trade terms, shipping terms;
item, items, article, item description, description, description of goods, description of services,
    particulars, goods, product, product description, cargo, commodity,
    nature and quantity of goods, description of packages and goods;
confidentiality period, confidentiality term, non-disclosure period, duration of confidentiality;
liability cap, cap on liability, limitation of liability, maximum liability, limit of liability;
maturity date, repayment date, final maturity date, maturity, final repayment date,
    date of maturity, final maturity, last instalment due on, last installment due on;
facility amount, commitment, total commitment, total commitments, loan amount, facility limit,
    amount of facility, amount of loan, limit sanctioned, sanctioned limit, sanctioned amount,
    amount sanctioned, loan facility, facility size, credit limit, principal amount;
interest rate, rate of interest, interest, pricing, applicable rate, loan rate;
arrangement fee, upfront fee, up-front fee, front-end fee, closing fee, origination fee,
    facility fee, processing fee, processing charges, establishment fee, loan fee, upfront charges;
purpose, use of proceeds, purpose of loan, purpose of facility, purpose of the facility,
    purpose of the loan, loan purpose, use of funds;
security, collateral, primary security;
governing law, applicable law, proper law;
document date, agreement date, date of agreement, date of letter, letter date, dated;
monthly payment, monthly installment, monthly instalment;
holiday entitlement, annual leave, vacation days, paid leave, vacation;
jurisdiction, place of jurisdiction, courts, forum;
renewal period, renewal term, renewal;
purchase price, total purchase price, price;
premises, leased premises, property address, property, leased property;
subtotal, sub total, sub-total, net total, net amount, total net;
shipping, shipping cost, freight, delivery charge, shipping & handling;
late fee, late charge, late payment fee;
ship to, deliver to, delivery address, shipping address;
"""
